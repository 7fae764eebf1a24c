"""The protocol over standard input and output, which nothing else may touch.

A client reads every byte of this process's standard output as protocol. Therefore, before anything
else happens, the two descriptors are set aside. Whatever libraries, Java or warnings print goes to
standard error. The SDK serves, and gets the messages of the client from here. By itself, it would
leave bytes that are no message unanswered, read a line of any length, and pass each message on
through four tasks.
"""

from __future__ import annotations

import logging
import os
import select
import signal
from typing import NamedTuple

import anyio
import anyio.to_thread
from anyio.abc import ObjectStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from arag_search.errors import ArgumentError
from arag_search.mcp_server.messages import (
    END_BYTES,
    MAX_MESSAGE_BYTES,
    BadMessage,
    read_message,
    too_long,
)
from arag_search.mcp_server.protocol import Session

_MAX_LINE_BYTES = MAX_MESSAGE_BYTES + 1
_DRAIN_S = 10.0
"""Seconds for replies to requests that arrived before the input ended."""
_LOOK_S = 0.01
_ROOM_MS = 100
"""Milliseconds between two looks at whether answers are still awaited."""
_GONE = select.POLLERR | select.POLLHUP
CLIENT_LOOK_S = 3.0
"""Seconds between two looks at whether the client is still there."""

_logger = logging.getLogger(__name__)


class Channel(NamedTuple):
    """Two private descriptors: requests are read from one, and replies written to the other."""

    reading: int
    writing: int


def claim_stdio() -> Channel:
    """Claim standard input and output for the protocol. For all other code, including child
    processes and Java, the input is empty from now on, and output goes to standard error. The SDK
    would claim them only when it serves, after the indexes have been opened.

    Raises ArgumentError if one of them is closed.
    """
    try:
        channel = Channel(os.dup(0), os.dup(1))
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
    except OSError as error:
        raise ArgumentError(
            f"Standard input or output cannot be used ({error.strerror}).",
            allowed="a client at both ends",
            do="Let a client start this command, or serve with --transport http.",
        ) from error
    for descriptor in channel:
        os.set_blocking(descriptor, True)
    return channel


async def serve_stdio(server: Server[Session], channel: Channel, stopping: anyio.Event) -> None:
    """Serve the one client until its input has ended and its requests are answered. If ``stopping``
    is set, end at once; a thread may then still wait for a line."""
    messages = _Messages(channel)
    async with anyio.create_task_group() as group:

        async def stop() -> None:
            await stopping.wait()
            messages.is_open = False
            group.cancel_scope.cancel()

        group.start_soon(stop)
        group.start_soon(messages.end_if_lost)
        await server.run(messages, messages, server.create_initialization_options())
        group.cancel_scope.cancel()


class _Messages(ObjectStream[SessionMessage]):
    """The two ends of a channel as the streams of messages that the SDK reads and writes.

    Lines that are no messages are answered here. The input ends when all its requests are answered.
    """

    def __init__(self, channel: Channel) -> None:
        self._input = open(channel.reading, "rb", closefd=False)  # noqa: SIM115
        self._output = channel.writing
        self._turn = anyio.Lock(fast_acquire=True)
        self._unanswered: list[object] = []
        self._parent = 0  # until the first answer
        self._is_lost = False
        self.is_open = True
        """Whether answers are still written: none that says that the server has ended."""

    async def end_if_lost(self) -> None:
        """End the server when its parent has ended, or nobody can read answers, and no call runs.

        The input does not tell: another process may hold its pipe. A process whose parent ends
        before the first answer was put into the background on purpose, and has none to lose."""
        lost, looks = "", 0  # two, because a request may have come that was not read
        while looks < 2:
            await anyio.sleep(CLIENT_LOOK_S)
            lost, room = "", self._room(0)
            if self._parent and self._parent != os.getppid():
                lost = "the process that started the server has ended"
            elif any(event & _GONE for _, event in room):
                lost = "the client has closed its end"
            is_idle = not self._unanswered or not room  # or nobody takes the answer
            looks = looks + 1 if lost and is_idle else 0
        self._is_lost = True
        _logger.warning("arag-search: %s, so that the server ends.", lost)
        os.kill(os.getpid(), signal.SIGTERM)  # because a thread still waits for a line

    async def receive(self) -> SessionMessage:
        """Return the next message of the client."""
        while line := await anyio.to_thread.run_sync(self._read, abandon_on_cancel=True):
            if not line.strip():
                continue
            is_whole = len(line) <= _MAX_LINE_BYTES
            message = read_message(line) if is_whole else too_long(line, MAX_MESSAGE_BYTES)
            if isinstance(message, BadMessage):
                await self._answer(message.answer, message.id)
                continue
            if isinstance(message, JSONRPCRequest):
                self._unanswered.append(message.id)
            elif isinstance(message, JSONRPCNotification) and message.method.endswith("/cancelled"):
                self._note_answer((message.params or {}).get("requestId"))
            return SessionMessage(message)
        with anyio.move_on_after(_DRAIN_S):
            while self._unanswered:
                await anyio.sleep(_LOOK_S)
        self._is_lost = True
        raise anyio.EndOfStream

    async def send(self, item: SessionMessage) -> None:
        """Write a message on a line. A message that was begun is finished when the server ends."""
        message = item.message
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        await self._answer(text, message.id if is_answer else None)

    async def send_eof(self) -> None:
        """Do nothing: the descriptors stay open, as a thread may still use one."""

    aclose = send_eof

    async def _answer(self, text: str, id_: object) -> None:
        # Before the answer is there: a client that has it may end the parent at once.
        self._parent = self._parent or os.getppid()
        async with self._turn:
            if self.is_open and (rest := self._write(f"{text}\n".encode(), waits=False)):
                await anyio.to_thread.run_sync(self._write, rest)
        self._note_answer(id_)

    def _read(self) -> bytes:
        # Of a longer line, as much is left: a beginning, and the end.
        try:
            line = piece = self._input.readline(_MAX_LINE_BYTES + 1)
            while len(line) > _MAX_LINE_BYTES and piece and not piece.endswith(b"\n"):
                piece = self._input.readline(_MAX_LINE_BYTES)
                line = line[:-END_BYTES] + (line[-END_BYTES:] + piece)[-END_BYTES:]
        except OSError:  # a socket whose other end was closed before it had read everything
            return b""
        return line

    def _room(self, wait_ms: int) -> list[tuple[int, int]]:
        """Return what the output is ready for, if only an error; nothing if it is full."""
        output = select.poll()
        output.register(self._output, select.POLLOUT)
        return output.poll(wait_ms)

    def _write(self, data: bytes, waits: bool = True) -> bytes:
        """Write data, or as much as there is room for; return the rest."""
        try:
            while data:
                if self._room(_ROOM_MS if waits else 0):  # for so many bytes
                    data = data[os.write(self._output, data[: select.PIPE_BUF]) :]
                elif not waits or self._is_lost:
                    break
        except OSError:  # a client that has gone; its input tells the server
            return b""
        return data

    def _note_answer(self, id_: object) -> None:
        if id_ in self._unanswered:
            self._unanswered.remove(id_)
