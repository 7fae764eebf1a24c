"""The protocol over standard input and output, which nothing else may touch.

A client reads every byte of this process's standard output as protocol. Therefore, before anything
else happens, the two descriptors are set aside, and whatever libraries, Java or warnings print goes
to standard error. The SDK's transport reads and writes the lines.
"""

from __future__ import annotations

import os
import select
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, cast

import anyio
import anyio.lowlevel
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import JSONRPCNotification, JSONRPCRequest, RequestId

from arag_search.errors import ArgumentError
from arag_search.mcp_server.messages import (
    END_BYTES,
    MAX_MESSAGE_BYTES,
    BadMessage,
    id_at_ends,
    read_message,
    too_long,
)
from arag_search.mcp_server.protocol import Session

_PIECE_BYTES = 1 << 16
_DRAIN_S = 10.0
"""Seconds for replies to requests that arrived before the input ended."""
_FLUSH_S = 2.0
"""Seconds for a reply that is being written at the end."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Two private descriptors: requests are read from one, and replies written to the other."""

    reading: int
    writing: int

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.reading)
        os.close(self.writing)


def claim_stdio() -> Channel:
    """Claim standard input and output for the protocol. For all other code, including child
    processes and Java, the input is empty from now on, and output goes to standard error. The SDK
    would claim them only when it serves, after the indexes have been opened.

    Raises ArgumentError if one of them is closed.
    """
    try:
        channel = Channel(os.dup(0), os.dup(1))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
    except OSError as error:
        raise ArgumentError(
            f"Standard input or output cannot be used ({error.strerror}).",
            allowed="a client at both ends",
            do="Let a client start this command, or serve with --transport http.",
        ) from error
    return channel


async def serve_stdio(server: Server[Session], channel: Channel, stopping: anyio.Event) -> None:
    """Serve the one client until its input has ended and its requests are answered, or until
    ``stopping`` is set."""
    lines = cast("anyio.AsyncFile[str]", _Lines(channel))
    async with anyio.create_task_group() as group:

        async def stop() -> None:
            await stopping.wait()
            group.cancel_scope.cancel()

        group.start_soon(stop)
        async with stdio_server(lines, lines) as streams:
            await server.run(*streams, server.create_initialization_options())
            group.cancel_scope.deadline = anyio.current_time() + _FLUSH_S
        group.cancel_scope.cancel()


class _Lines:
    """The two ends of a channel as a file of lines, which the SDK reads and writes.

    A wait for a line can be cancelled, unlike that of a thread. Lines that are no messages are
    answered here. The input ends when all its requests are answered.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._unanswered: list[RequestId] = []
        self._changed = anyio.Event()
        self._is_heard = True
        self._writing = anyio.Lock()

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line, is_whole in self._pieces():
            message = read_message(line) if is_whole else too_long(line, MAX_MESSAGE_BYTES)
            if isinstance(message, BadMessage):
                await self.write(f"{message.answer}\n")
                continue
            if isinstance(message, JSONRPCRequest):
                self._unanswered.append(message.id)
            elif isinstance(message, JSONRPCNotification) and message.method.endswith("/cancelled"):
                self._note_answer((message.params or {}).get("requestId"))
            yield line.decode()
        with anyio.move_on_after(_DRAIN_S):
            while self._unanswered and self._is_heard:
                await self._changed.wait()

    async def write(self, text: str) -> None:
        """Write a line. One that was begun is finished when the server ends."""
        left = bytearray(text.encode())
        async with self._writing:
            try:
                await self._write(left)
            except anyio.get_cancelled_exc_class():
                with anyio.move_on_after(_FLUSH_S, shield=True):
                    await self._write(left)
                raise
        self._note_answer(id_at_ends(text[:END_BYTES].encode()))

    async def flush(self) -> None:
        """Do nothing: every line has been written."""

    async def _write(self, left: bytearray) -> None:
        while left and self._is_heard:
            await _ready(anyio.wait_writable, self._channel.writing)
            try:  # So much a pipe takes without blocking once it takes anything.
                del left[: os.write(self._channel.writing, left[: select.PIPE_BUF])]
            except OSError:  # the client has gone; its end of the input tells the server
                self._is_heard = False

    def _note_answer(self, id_: object) -> None:
        if id_ in self._unanswered:
            self._unanswered.remove(cast(RequestId, id_))
        self._changed.set()
        self._changed = anyio.Event()

    async def _pieces(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Yield lines that are not blank, without their ends, and with whether they are whole: of
        a line that is too long, the ends are left."""
        begun, is_whole = bytearray(), True
        while True:
            await _ready(anyio.wait_readable, self._channel.reading)
            try:
                piece = os.read(self._channel.reading, _PIECE_BYTES)
            except OSError:  # a socket whose other end was closed before it had read everything
                piece = b""
            parts = piece.split(b"\n")
            for at, part in enumerate(parts, 1):
                begun += part
                if len(begun) > MAX_MESSAGE_BYTES:
                    del begun[END_BYTES:-END_BYTES]
                    is_whole = False
                if at < len(parts) or not piece:  # a line has ended, or the input has
                    if begun.strip():
                        yield bytes(begun), is_whole
                    begun, is_whole = bytearray(), True
            if not piece:
                return


async def _ready(wait: Callable[[int], Any], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:  # a file on disk, which is always ready and cannot be waited for
        await anyio.lowlevel.checkpoint()
