"""Processes of the benches, and what they cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import BenchError
from bench.workbench import last_lines

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a command with its children. ``peak_bytes`` is the most memory of the command
    itself: the maximum told of a process that has ended is at least its parent's."""

    seconds: float
    processor_s: float
    peak_bytes: int


def run(
    command: Sequence[str | Path],
    given: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Cost:
    """Run a command that gets this text on its standard input. Raises BenchError if it fails."""
    words = list(map(str, command))
    with tempfile.TemporaryFile("w+") as input_, tempfile.TemporaryFile("w+") as output:
        input_.write(given)
        input_.seek(0)
        began = time.perf_counter()
        process = subprocess.Popen(
            words, env=environment or quiet_environment(), cwd=folder,
            stdin=input_, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        peak = ended = 0
        while not ended:
            time.sleep(_POLL_S)
            peak = max(peak, _peak_of(process.pid))
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            end = " ".join(last_lines(output.read()))
            raise BenchError(f"A command failed: {end}", where=" ".join(words)[:500])
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak)


def _peak_of(process: int) -> int:
    """Return the highest memory of a process in bytes; 0 if the system does not say."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
    return 0


class Process:
    """A process that answers lines of JSON with lines of JSON, in an empty folder."""

    def __init__(
        self, stack: ExitStack, command: Sequence[str | Path], environment: Mapping[str, str]
    ) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self._errors = stack.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115
        self._process = stack.enter_context(
            subprocess.Popen(
                list(map(str, command)), cwd=folder, env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            )
        )  # fmt: skip
        stack.callback(self._process.kill)

    def ask(self, request: Mapping[str, object]) -> Any:
        """Send a request and return its answer. Raises BenchError if the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # then there is no answer
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            self._process.wait(10)
            self._errors.seek(0)
            end = " ".join(last_lines(self._errors.read()))
            raise BenchError(f"A process ended: {end}", where=str(self._process.args)[:200])
        return json.loads(line)


def processor_time(process: int) -> float:
    """Return the processor time in seconds of a process that runs, and of its children that
    ended."""
    if sys.platform != "linux":
        shown = subprocess.check_output(("ps", "-o", "time=", "-p", str(process)), text=True)
        minutes, seconds = shown.strip().rsplit(":", 1)
        return 60 * int(minutes.rpartition(":")[2]) + float(seconds)
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def quiet_environment(**more: str) -> Mapping[str, str]:
    """Return the environment of a user: where PYTHONDONTWRITEBYTECODE is set, every start compiles
    its imports anew."""
    environment = {**os.environ, **more}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment
