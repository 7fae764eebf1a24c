"""An embedding on a Ray cluster of two workers, in a process that also runs Java."""

import ctypes
import dataclasses
import signal

import pytest
import ray

from arag_search.errors import ArgumentError
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.making import EncoderChoice
from index_jobs.embedding.ray import RayMaking, begin, end
from tests.support.embeddings import (
    ENCODER,
    SMALL,
    InterruptingProgress,
    build_small_index,
    check_embedded,
)

_ROOM = 256
"""Bytes that hold a struct sigaction, on any machine."""


def main() -> None:
    """Print one line if everything is as it should be; raise otherwise."""
    build_small_index(60)
    before = handlers()
    assert all(before)
    begin(ray, num_cpus=2)
    assert handlers() == before, "the signals are Ray's"
    try:
        on_a_cluster()
    finally:
        end(ray)
    assert handlers() == before, "the signals are not Java's any more"
    check_embedded("index")
    print("as without Ray")


def on_a_cluster() -> None:
    on_ray = dataclasses.replace(SMALL, ray=True, workers=2)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, on_ray, InterruptingProgress(100))
    report = embed_index("index", ENCODER, on_ray)
    assert report.continued_shards >= 1
    assert (report.ray, report.processes) == (True, 3)
    check_embedded("index")
    with pytest.raises(ArgumentError) as raised:
        embed_index("index", ENCODER, dataclasses.replace(on_ray, workers=3, overwrite=True))
    assert raised.value.what == "--workers: the Ray cluster has room for 2 workers, not 3."
    assert ray.is_initialized(), "it is not ours to shut down"
    wrong = EncoderChoice("hashing:x", None, 1)
    with RayMaking(wrong, 1, 10) as making, pytest.raises(ArgumentError, match="dimension"):
        making.identity()


def handlers() -> list[int]:
    """Return the addresses of the handlers of the signals that Java needs."""
    libc = ctypes.CDLL(None)
    addresses: list[int] = []
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        room = ctypes.create_string_buffer(_ROOM)
        assert libc.sigaction(int(number), None, room) == 0
        addresses.append(int.from_bytes(room.raw[: ctypes.sizeof(ctypes.c_void_p)], "little"))
    return addresses
