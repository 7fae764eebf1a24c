"""The protocol over standard input and output, which nothing else may touch.

A client reads every byte of this process's standard output as protocol. Therefore, before anything
else happens, the two descriptors are set aside, and whatever libraries, Java or warnings print goes
to standard error.
"""

from __future__ import annotations

import os
import select
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from arag_search.errors import ArgumentError
from arag_search.mcp_server.messages import BadMessage, id_in_flight, read_message

MAX_LINE_BYTES = 1 << 20
"""A longer message is rejected without being read."""
_PIECE_BYTES = 1 << 16
_DRAIN_S = 10.0
"""Seconds for replies to requests that arrived before the input ended."""
_FLUSH_S = 2.0
"""Seconds for a reply that is being written at the end."""
_REFUSAL = ServerMessageMetadata()
"""The mark of an answer to a bad message, after which a request with the same id is still
unanswered."""

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]
"""The streams that a server of the SDK reads from and writes to."""


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
    processes and Java, the input is empty from now on, and output goes to standard error.

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


@asynccontextmanager
async def stdio_streams(channel: Channel) -> AsyncGenerator[Streams]:
    """Open streams for a server, which end when the input does and all requests are answered."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    open_requests, receiving, sent = _OpenRequests(), anyio.CancelScope(), anyio.Event()

    async def receive() -> None:
        with receiving:
            await _receive(channel.reading, to_server, to_client.clone(), open_requests)

    async def send() -> None:
        await _send(channel.writing, from_server, open_requests)
        sent.set()

    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        group.start_soon(send)
        try:
            yield from_client, to_client
            receiving.cancel()
            to_client.close()
            with anyio.move_on_after(_FLUSH_S):
                await sent.wait()
        finally:
            group.cancel_scope.cancel()
            for stream in (to_server, from_client, to_client, from_server):
                stream.close()


class _OpenRequests:
    """The ids of requests that have no reply yet."""

    def __init__(self) -> None:
        self._ids: set[types.RequestId] = set()
        self._changed = anyio.Event()
        self._is_heard = True

    def asked(self, message: types.JSONRPCMessage) -> types.JSONRPCMessage | BadMessage:
        """Note the request, and return the message; or an error if another request with its id has
        no reply yet."""
        if isinstance(message.root, types.JSONRPCRequest):
            if message.root.id in self._ids:
                return id_in_flight(message.root.id)
            self._ids.add(message.root.id)
        return message

    def answered(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message.root, types.JSONRPCResponse | types.JSONRPCError):
            self._ids.discard(message.root.id)
            self._change()

    def nobody_listens(self) -> None:
        self._is_heard = False
        self._change()

    async def done(self) -> None:
        """Wait until all are answered, or the client has gone."""
        while self._ids and self._is_heard:
            await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def _receive(
    reading: int,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    to_client: MemoryObjectSendStream[SessionMessage],
    open_requests: _OpenRequests,
) -> None:
    async with to_server, to_client, aclosing(_lines(reading)) as lines:
        async for line in lines:
            message = _parsed(line)
            if isinstance(message, types.JSONRPCMessage):
                message = open_requests.asked(message)
            try:
                if isinstance(message, BadMessage):
                    await to_client.send(SessionMessage(_refusal_of(message), _REFUSAL))
                else:
                    await to_server.send(SessionMessage(message))
            except anyio.BrokenResourceError:  # nobody is left at the other end
                return
        with anyio.move_on_after(_DRAIN_S):
            await open_requests.done()


async def _send(
    writing: int,
    from_server: MemoryObjectReceiveStream[SessionMessage],
    open_requests: _OpenRequests,
) -> None:
    async with from_server:
        async for message in from_server:
            text = message.message.model_dump_json(by_alias=True, exclude_none=True)
            try:
                await _write(writing, text.encode() + b"\n")
            except OSError:  # the client has gone; its end of the input tells the server
                open_requests.nobody_listens()
                return
            if message.metadata is not _REFUSAL:
                open_requests.answered(message.message)


async def _lines(reading: int) -> AsyncGenerator[bytes | None]:
    """Yield lines that are not blank, without their ends, and None for a line that is too long."""
    begun, is_too_long = bytearray(), False
    while True:
        await _ready(anyio.wait_readable, reading)
        try:
            piece = os.read(reading, _PIECE_BYTES)
        except OSError:  # a socket whose other end was closed before it had read everything
            piece = b""
        pieces = piece.split(b"\n")
        for at, part in enumerate(pieces, 1):
            begun += part
            if is_too_long or len(begun) > MAX_LINE_BYTES:
                begun, is_too_long = bytearray(), True
            if at < len(pieces) or not piece:  # a line has ended, or the input has
                if is_too_long or begun.strip():
                    yield None if is_too_long else bytes(begun)
                begun, is_too_long = bytearray(), False
        if not piece:
            return


async def _write(writing: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        await _ready(anyio.wait_writable, writing)
        # So much a pipe takes without blocking once it takes anything.
        left = left[os.write(writing, left[: select.PIPE_BUF]) :]


async def _ready(wait: Callable[[int], Any], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:  # a file on disk, which is always ready and cannot be waited for
        await anyio.lowlevel.checkpoint()


def _parsed(line: bytes | None) -> types.JSONRPCMessage | BadMessage:
    """Parse the message in a line, or return what is wrong with it."""
    if line is not None:
        return read_message(line)
    text = str(
        ArgumentError(
            f"The message is longer than {MAX_LINE_BYTES:,} bytes.",
            allowed="one JSON object per line, as the protocol requires",
        )
    )
    return BadMessage(None, types.ErrorData(code=types.INVALID_REQUEST, message=text))


def _refusal_of(bad: BadMessage) -> types.JSONRPCMessage:
    """Return the message for the sender of a bad one: the answer to a request, else a log
    message."""
    if bad.id is not None:
        return types.JSONRPCMessage(bad.answer(bad.id))
    note = types.LoggingMessageNotification(
        params=types.LoggingMessageNotificationParams(level="error", data=bad.error.message)
    )
    plain = note.model_dump(by_alias=True, mode="json", exclude_none=True)
    return types.JSONRPCMessage(types.JSONRPCNotification(jsonrpc="2.0", **plain))
