"""Work on the machines of a Ray cluster, which share storage with this one.

Ray runs each item again if the process or the machine that worked on it is lost, so work must be
repeatable.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from arag_search.errors import ArgumentError, UnavailableError, WorkerLostError
from arag_search.system.extras import missing_extra
from index_jobs.cutting.chunking import program_version
from index_jobs.workers.executor import Done, Executor, Item

RETRIES = 5
"""How often an item is done again after its process or machine was lost."""

_ADDRESSES = (
    "auto (RAY_ADDRESS, or the cluster that runs on this machine), local, or HOST:PORT of a cluster"
    " that this machine has joined"
)
_VARIABLE = "RAY_ADDRESS"
_CONNECT_S = 5.0
_UNDER_WAY = 3  # pending items for each worker: those that are done wait for slower ones before
_ACTION_BYTES = 256
"""More than the size of the system's ``struct sigaction``, on every platform."""


class Cluster:
    """A Ray cluster, entered for the time of a job. It is the cluster to which this process is
    connected, else the cluster at an address. An address is ``auto`` (RAY_ADDRESS, or the cluster
    that runs on this machine), ``local`` (started here, and ended afterwards) or ``HOST:PORT``.

    Entering raises MissingExtraError, UnavailableError if there is no cluster, and ArgumentError if
    its machines have another version of Ray or of this program, or none.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> Cluster:
        try:
            import ray
        except ImportError as error:
            raise missing_extra("ray", "ray") from error
        self._ray: Any = ray
        with ExitStack() as opened:
            if not self._ray.is_initialized():
                # Ray prints what it says about lost machines, where the report should be alone.
                opened.enter_context(redirect_stdout(sys.stderr))
                self._connect()
                opened.callback(end, self._ray)
            self.machines = [
                node
                for node in self._ray.nodes()
                if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
            ]
            self.check({})
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def _connect(self) -> None:
        address = self._address
        if address == "auto":
            address = os.environ.get(_VARIABLE) or address
        host, _, port = address.rpartition(":")
        if address not in ("auto", "local") and not (host and port.isdecimal()):
            raise ArgumentError(f'`ray`: "{address}" is not an address.', allowed=_ADDRESSES)
        try:
            if host:  # Ray would try for minutes
                socket.create_connection((host, int(port)), _CONNECT_S).close()
            begin(self._ray, address=address)
        except (OSError, OverflowError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            if "ersion mismatch" in reason:
                raise ArgumentError(
                    "`ray`: the cluster has another version of Ray or Python.",
                    where=reason[:300],
                    allowed="the same versions on all machines",
                    do="Install the versions of the cluster here.",
                ) from error
            raise UnavailableError(
                f"`ray`: there is no Ray cluster ({reason[:200]}).",
                where=address,
                allowed=_ADDRESSES,
                do="Start it with ray start --head, and join it on each machine with ray start"
                " --address HOST:PORT.",
            ) from error

    def check(self, needs: Mapping[str, bytes | None]) -> None:
        """Compare the program on all machines with this one. Raise ArgumentError if a machine does
        not see a file or folder of ``needs`` (with this content, unless it is None)."""
        version = program_version()

        # Ray sends a function inside of another by its code: the program may be missing there.
        def look() -> tuple[list[Any] | str, list[str]]:
            try:
                from index_jobs.cutting.chunking import program_version
            except ImportError as error:
                return str(error), []
            from index_jobs.workers.cluster import unseen

            return program_version(), unseen(needs)

        for machine, (there, missing) in zip(self.machines, self.everywhere(look), strict=True):
            where = f"the machine {machine['NodeManagerAddress']} of the Ray cluster"
            if there != version:
                what = there if isinstance(there, str) else f"{there} is there, {version} is here"
                raise ArgumentError(
                    f"`ray`: a machine has not this version of arag_search ({what}).",
                    where=where,
                    allowed="the same version, with its extras, on all machines",
                    do="Install it there, in the environment in which ray start runs.",
                )
            if missing:
                raise ArgumentError(
                    f"`ray`: a machine does not see {missing[0]}.",
                    where=where,
                    allowed="files and folders on storage that all machines share, at the same"
                    " path",
                    do="Move them to shared storage, or mount it there.",
                )

    def workers(self, wanted: int | None, *, by_machine: bool = False, gpus: bool = False) -> int:
        """Return how many items are worked on at once: ``wanted``, or one for each GPU (``gpus``,
        if there are any), machine (``by_machine``) or core. Raises ArgumentError for too many."""
        capacity = self._gpus(gpus) or self._cores
        if wanted is not None and not 1 <= wanted <= capacity:
            raise ArgumentError(
                f"`workers`: the Ray cluster has room for {capacity:,} workers, not {wanted:,}.",
                allowed=f"1 to {capacity:,}",
                do="Use fewer `workers`, or add machines to the cluster.",
            )
        return wanted or self._gpus(gpus) or (len(self.machines) if by_machine else capacity)

    def executor(
        self, work: Callable[[Any], Done], workers: int, *, gpus: bool = False
    ) -> ClusterExecutor[Any, Done]:
        """Return an Executor that works on ``workers`` items at once. See ``workers``."""
        return ClusterExecutor(self._ray, work, workers, self._needs(workers, gpus))

    def everywhere(
        self, function: Callable[[], Done], workers: int | None = None, *, gpus: bool = False
    ) -> list[Done]:
        """Call a function on each machine, at once, or as one of ``workers``. If these work with
        GPUs, only machines that have some are called."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        needs = {"num_cpus": 0} if workers is None else self._needs(workers, gpus)
        remote: Any = self._ray.remote(**needs)(lambda: function())
        references = [
            remote.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote()
            for node in self.machines
            if node["Resources"].get("GPU", 0) >= needs.get("num_gpus", 0)
        ]
        return [result_of(self._ray, reference) for reference in references]

    @property
    def _cores(self) -> int:
        return sum(int(node["Resources"]["CPU"]) for node in self.machines)

    def _gpus(self, wanted: bool) -> int:
        return wanted * sum(int(node["Resources"].get("GPU", 0)) for node in self.machines)

    def _needs(self, workers: int, gpus: bool) -> dict[str, int]:
        """Return the resources of one item. Without GPUs, it gets an equal share of the cores, of
        which the smallest machine has enough."""
        if self._gpus(gpus):
            return {"num_gpus": 1, "num_cpus": 0}
        smallest = min(int(node["Resources"]["CPU"]) for node in self.machines)
        return {"num_cpus": max(1, min(smallest, self._cores // workers))}


class ClusterExecutor(Executor[Item, Done]):
    """An Executor on the machines of a cluster. Leaving it cancels what is under way."""

    def __init__(
        self, ray: Any, work: Callable[[Any], Done], workers: int, needs: Mapping[str, int]
    ) -> None:
        super().__init__(_UNDER_WAY * workers)
        self._ray = ray
        self._remote = ray.remote(max_retries=RETRIES, **needs)(_call)
        self._work = ray.put(work)

    def __exit__(self, *exception: object) -> None:
        for _, reference in self._pending:
            self._ray.cancel(reference, force=True)
        self._pending.clear()

    def _start(self, payload: Any) -> Any:
        return self._remote.remote(self._work, payload)

    def _wait(self, handle: Any, timeout_s: float) -> bool:
        return bool(self._ray.wait([handle], timeout=timeout_s)[0])

    def _result(self, handle: Any) -> Done:
        return result_of(self._ray, handle)


def _call(work: Callable[[Any], Done], payload: Any) -> Done:
    return work(payload)


def unseen(needs: Mapping[str, bytes | None]) -> list[str]:
    """Return the paths that this machine does not see, or with other content."""
    return [
        path
        for path, content in needs.items()
        if not os.path.exists(path) or (content is not None and Path(path).read_bytes() != content)
    ]


def result_of(ray: Any, reference: Any) -> Any:
    """Return a result. Raises what the work raised, WorkerLostError if its workers were lost."""
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(reference)
    except RayTaskError as error:
        cause: Any = error.cause
        raise (cause if isinstance(cause, Exception) else error) from error
    except RayError as error:
        raise WorkerLostError(
            "A worker of the Ray cluster has ended.",
            where=str(error).strip().splitlines()[0],
            do="Give its machine more memory, or use fewer `workers`.",
        ) from error


def begin(ray: Any, **options: Any) -> None:
    """Connect to a cluster or start one, without breaking Java in this process."""
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    with _restored_signal_handlers():
        ray.init(**{**quiet, **options})


def end(ray: Any) -> None:
    """Leave the cluster, and shut it down if it was started here."""
    with _restored_signal_handlers():
        ray.shutdown()


@contextmanager
def _restored_signal_handlers() -> Generator[None]:
    """Restore the signal handlers afterwards: Ray replaces some when it starts, and resets them
    when it stops.

    Java relies on its own handlers: it uses SIGSEGV, for example, to detect null pointers.
    """
    if os.name != "posix":
        yield
        return
    libc = ctypes.CDLL(None)
    actions: list[tuple[int, Any]] = []
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        action = ctypes.create_string_buffer(_ACTION_BYTES)
        if libc.sigaction(int(number), None, action) == 0:
            actions.append((int(number), action))
    try:
        yield
    finally:
        for number, action in actions:
            libc.sigaction(number, action, None)
