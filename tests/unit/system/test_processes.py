"""Processes and cores, with and without the /proc and sched_getaffinity that only Linux has."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.system import processes
from arag_search.system.processes import (
    Process,
    process_space,
    share_cores,
    start_of,
    this_process,
    usable_cores,
    waiting_seconds,
    worker_environment,
)
from tests.support.patience import PATIENCE_S


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child
        child.kill()


@pytest.fixture(params=["proc", "ps"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set the source about processes: ``/proc``, or ``ps`` as on macOS."""
    if request.param == "ps" and shutil.which("ps") is None:
        pytest.skip("there is no ps")
    if request.param != "proc":
        monkeypatch.setattr(processes, "_PROC", Path("/absent"))
    return request.param


@pytest.mark.usefixtures("system")
def test_a_process_runs_until_it_has_ended(sleeper: "subprocess.Popen[bytes]") -> None:
    started = start_of(sleeper.pid)
    assert started
    child = Process(sleeper.pid, started)
    assert child.runs
    assert this_process().runs
    sleeper.kill()
    sleeper.wait()
    assert not child.runs
    assert start_of(sleeper.pid) is None


@pytest.mark.usefixtures("system")
def test_a_process_id_that_another_process_reuses_is_not_mistaken_for_the_first(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    started = start_of(sleeper.pid)
    assert started
    assert not replace(Process(sleeper.pid, started), started="Mon Jan 1 00:00:00 2001").runs
    assert not Process(sleeper.pid, "").runs


def test_the_time_that_a_process_waits_for_a_core_is_none_where_it_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert waiting_seconds(7) == 0
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "schedstat").write_text("1000 2500000000 3\n")
    assert waiting_seconds(7) == 2.5


@pytest.mark.usefixtures("system")
def test_a_zombie_does_not_run(sleeper: "subprocess.Popen[bytes]") -> None:
    os.kill(sleeper.pid, signal.SIGKILL)
    last = time.monotonic() + PATIENCE_S
    while start_of(sleeper.pid) is not None and time.monotonic() < last:
        time.sleep(0.01)  # no process waits for the zombie meanwhile
    assert start_of(sleeper.pid) is None
    assert sleeper.returncode is None


@pytest.mark.parametrize("system", ["ps"], indirect=True)
@pytest.mark.usefixtures("system")
def test_the_start_of_a_process_is_the_same_in_all_time_zones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: set[str | None] = set()
    for zone in ("UTC", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        starts.add(start_of(os.getpid()))
    assert len(starts) == 1


@pytest.mark.usefixtures("system")
def test_a_process_has_certainly_ended_only_if_others_can_be_seen(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    child = Process(sleeper.pid, start_of(sleeper.pid) or "")
    assert not child.has_ended
    sleeper.kill()
    sleeper.wait()
    assert child.has_ended
    assert not Process(sleeper.pid, "").has_ended
    monkeypatch.setattr(processes, "start_of", lambda pid: None)  # as with hidepid
    assert not child.has_ended


def test_a_pid_namespace_is_a_space_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_namespace(*options: str) -> str:
        show = "from arag_search.system.processes import process_space; print(process_space())"
        command = ["unshare", "--pid", "--fork", *options, sys.executable, "-c", show]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if not done.returncode else pytest.skip(done.stderr)

    own = process_space()
    boot, _, namespace = own.partition(" ")
    assert namespace.startswith("pid:[")
    inner = in_namespace("--mount-proc")
    assert inner.startswith(f"{boot} pid:[")
    assert inner != own
    assert in_namespace() == "", "/proc is that of the outer one"
    monkeypatch.setattr(processes, "_PROC", tmp_path)  # macOS has sysctl instead
    (tmp_path / "sysctl").write_text("#!/bin/sh\necho $2\n")
    (tmp_path / "sysctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert process_space() == "kern.boottime"
    (tmp_path / "sysctl").unlink()
    assert process_space() == ""


def test_cores_are_counted_on_systems_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cores() == 6
    assert worker_environment(4)["OMP_NUM_THREADS"] == "1"
    assert worker_environment(3)["RAYON_NUM_THREADS"] == "2"
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


def test_idle_threads_of_libraries_sleep_unless_the_user_has_set_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setenv("KMP_BLOCKTIME", "")
    del os.environ["KMP_BLOCKTIME"]
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    assert share_cores() == usable_cores()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    assert os.environ["KMP_BLOCKTIME"] == "0"
    assert os.environ["OPENBLAS_THREAD_TIMEOUT"] == "4"
