"""An index on disk: a folder with generations, of which ``manifest.json`` names the live one.

``<location>/manifest.json`` is replaced atomically, by every build and update. A builder locks
``<location>/build.lock``.
``<location>/gN/`` is a generation; its readers share a lock on ``gN/in_use.lock``.
``gN/build.json`` exists until the generation is finished and holds the signature of the build.
Locks are ``flock`` locks, so they end with the process that holds them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from arag_search.engines.base import REBUILD
from arag_search.engines.write import signature_difference
from arag_search.errors import (
    BuildError,
    IndexDamagedError,
    IndexExistsError,
    IndexLockedError,
    IndexNotFoundError,
    on_one_line,
)
from arag_search.system.durable import (
    full_disk_advice,
    open_plain,
    read_plain,
    sync,
    write_atomically,
)
from arag_search.system.lock import HeldError, hold, is_at, try_lock

LOCATION_FORMAT = "arag-index"

_MANIFEST = "manifest.json"
_BUILD_LOCK = "build.lock"
_BUILDER = "arag-search index, process "
_IN_USE = "in_use.lock"
_SIGNATURE = "build.json"
_HOST_AND_PORT = re.compile(r"[A-Za-z0-9.-]+:[0-9]{2,5}/")
_GENERATION = re.compile(r"g([1-9]\d{0,8})")
_MANIFEST_BYTES = 4096
_ATTEMPTS = 50
_PAUSE_S = 0.02
_NAMED = 3
_SIMILARITY = 0.7


@dataclass(slots=True)
class HeldGeneration:
    """The live generation of a location, protected from deletion until ``release``."""

    path: Path
    name: str
    _descriptor: int | None

    def release(self) -> None:
        """Allow later builds to delete the generation. May be called again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def is_index(location: Path) -> bool:
    """Return whether a folder is an index, perhaps a damaged or unfinished one. It is if the
    generation that it names is there, or if a builder has locked it."""
    try:
        name = _live_name(location)
    except IndexDamagedError:
        name = None
    return (name is not None and (location / name).is_dir()) or _is_of_builder(location)


def folder_bytes(folder: Path) -> int:
    """Return the size of the files in a folder; 0 if there is none. They may vanish meanwhile."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(place, name)).st_size
    return size


def _is_of_builder(location: Path) -> bool:
    """Return whether a builder of an index has locked a folder."""
    try:
        return read_plain(location / _BUILD_LOCK, _MANIFEST_BYTES).startswith(_BUILDER.encode())
    except OSError:
        return False


def published_state(location: Path) -> bytes | None:
    """Return what changes whenever another state of the index is published; None if nothing can be
    read. One small read."""
    try:
        return read_plain(location / _MANIFEST, _MANIFEST_BYTES)
    except OSError:
        return None


def hold_live(location: Path) -> HeldGeneration:
    """Find the live generation and protect it from deletion; its path is absolute.

    Raises IndexNotFoundError or IndexDamagedError.
    """
    name: str | None = None
    for _ in range(_ATTEMPTS):
        name = _live_name(location)
        if name is None:
            raise _not_found(location)
        generation = _hold(location.absolute() / name, name)
        if generation is not None:
            if _live_name(location) == name:
                return generation
            generation.release()
        time.sleep(_PAUSE_S)
    raise IndexDamagedError(
        f"{_MANIFEST} names the state {name}, which does not exist.",
        where=str(location),
        do=REBUILD,
    )


def _hold(generation: Path, name: str) -> HeldGeneration | None:
    """Lock a generation for reading; None if it is deleted or being deleted."""
    if generation.is_symlink():
        return None
    try:
        descriptor = open_plain(generation / _IN_USE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(_IN_USE, error, generation) from error
    if try_lock(descriptor, shared=True) and is_at(descriptor, generation / _IN_USE):
        return HeldGeneration(generation, name, descriptor)
    os.close(descriptor)
    return None


def _unreadable(name: str, error: OSError, where: Path) -> IndexDamagedError:
    return IndexDamagedError(f"{name} cannot be read ({error.strerror}).", where=str(where))


def _not_found(location: Path) -> IndexNotFoundError:
    if location.exists() and not location.is_dir():
        return IndexNotFoundError(
            "This is a file, not an index.",
            where=str(location),
            do=f"Name its folder: {on_one_line(str(location.parent))}",
        )
    if not location.is_dir():
        if _HOST_AND_PORT.match(str(location)):
            do = f"Begin the address of a server with http:// or https://: http://{location}"
            return IndexNotFoundError("There is no index.", where=str(location), do=do)
        near = _nearest_names(location)
        other = f"Name one that is there: {near}. Or build" if near else "Build"
        do = f"{other} one: arag-search index SOURCE --to {location}"
        return IndexNotFoundError("There is no index.", where=str(location), do=do)
    if any(_unfinished(location)):
        return IndexNotFoundError(
            "A build of the index has begun and not finished.",
            where=str(location),
            do="Run the same arag-search index command again to resume it.",
        )
    return IndexNotFoundError(
        "The folder holds no index.",
        where=str(location),
        do="Name the folder that was given to arag-search index as --to.",
    )


def _nearest_names(location: Path) -> str:
    """Return the folders beside a path that are spelled nearly like it, at most three."""
    try:
        folders = {path.name.casefold(): path for path in location.parent.iterdir()}
    except OSError:
        return ""
    near = get_close_matches(location.name.casefold(), folders, _NAMED, _SIMILARITY)
    return ", ".join(on_one_line(str(folders[name])) for name in near if folders[name].is_dir())


def _live_name(location: Path) -> str | None:
    """Return the name of the live generation; None if there is no manifest.json."""
    try:
        text = read_plain(location / _MANIFEST, _MANIFEST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(_MANIFEST, error, location) from error
    try:
        loaded: Any = json.loads(text)
    except (ValueError, RecursionError):
        loaded = None
    if not isinstance(loaded, dict):
        loaded = {}
    manifest = cast("dict[str, Any]", loaded)
    live = manifest.get("live")
    if manifest.get("format") != LOCATION_FORMAT:
        raise IndexDamagedError(
            f"{_MANIFEST} is not the manifest of an index.",
            where=str(location),
            do="Name the folder that was given to arag-search index as --to.",
        )
    if not isinstance(live, str) or not _GENERATION.fullmatch(live):
        raise IndexDamagedError(
            f"{_MANIFEST} names no state.",
            where=str(location),
            do=REBUILD,
        )
    return live


# Building


class BuildSite:
    """A location that is locked by one builder; a context manager.

    Entering creates the folder and takes the lock. Raises IndexExistsError if there is an index and
    ``overwrite`` is not set, or if there are files of others. Raises IndexLockedError if another
    builder is running, and BuildError if the folder cannot be created. Leaving releases the lock,
    and removes the folder if it was created here and nothing was built.
    """

    def __init__(self, location: Path, *, overwrite: bool = False) -> None:
        self._location = location.absolute()  # Java does not follow os.chdir
        self._where = str(location)
        self._overwrite = overwrite
        self._created = False
        self._lock: int | None = None

    def __enter__(self) -> BuildSite:
        self._check()
        try:
            self._created = not self._location.exists()
            self._location.mkdir(parents=True, exist_ok=True)
            self._lock = self._take_lock()
        except OSError as error:
            raise BuildError(
                f"The folder of the index cannot be written ({error.strerror}).",
                where=self._where,
                do=full_disk_advice(error),
            ) from error
        try:
            self._check()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        lock, self._lock = self._lock, None
        if lock is None:
            return
        try:
            with suppress(OSError):  # what stays does no harm, and what was published is valid
                if self._created and os.listdir(self._location) == [_BUILD_LOCK]:
                    (self._location / _BUILD_LOCK).unlink()
                    self._location.rmdir()
                else:
                    os.ftruncate(lock, len(_BUILDER))
        finally:
            os.close(lock)

    def _check(self) -> None:
        location = self._location
        if location.exists() and not location.is_dir():
            raise IndexExistsError(
                "There is a file in the place of the index.",
                where=self._where,
                do="Name another folder.",
            )
        if not location.exists():
            return
        if (location / _MANIFEST).exists():
            try:
                _live_name(location)
            except IndexDamagedError:
                if not _is_of_builder(location):
                    raise self._foreign() from None
            if not self._overwrite:
                raise IndexExistsError(
                    "There is an index already.",
                    where=self._where,
                    do="Use `overwrite=True` to replace it, or name another folder.",
                )
        elif not _is_of_builder(location) and any(location.iterdir()):
            raise self._foreign()

    def _foreign(self) -> IndexExistsError:
        return IndexExistsError(
            "The folder holds files that do not belong to an index.",
            where=self._where,
            allowed="a folder that is empty or not there yet, or an index with `overwrite=True`",
            do="Name another folder.",
        )

    def _take_lock(self) -> int:
        try:
            return hold(self._location / _BUILD_LOCK, _BUILDER)
        except HeldError as error:
            raise IndexLockedError(
                f"Another build or update is running there ({error.holder}).",
                where=self._where,
                do="Wait for it, or stop it; or name another folder.",
            ) from None

    def begin(self, signature: Mapping[str, Any]) -> tuple[Path, bool, str]:
        """Return the absolute folder of the generation to build, whether it is resumed, and why.

        An unfinished generation with the same signature is resumed; any other is deleted.
        """
        why = ""
        for generation in _unfinished(self._location):
            before = _read_signature(generation)
            if before == _plain(signature):
                return generation, True, "nothing has changed since it was stopped"
            why = signature_difference(before, _plain(signature))
            shutil.rmtree(generation)
        matches = map(_GENERATION.fullmatch, self._names())
        numbers = [int(match[1]) for match in matches if match]
        generation = self._location / f"g{max(numbers, default=0) + 1}"
        generation.mkdir()
        (generation / _IN_USE).touch()
        write_atomically(generation / _SIGNATURE, _line(_plain(signature)))
        sync(self._location)
        return generation, False, why

    def discard(self, generation: Path) -> None:
        """Delete an unfinished generation."""
        if generation in _unfinished(self._location):
            shutil.rmtree(generation, ignore_errors=True)

    def publish(self, name: str) -> None:
        """Make a generation the live one, and delete the others that nobody reads."""
        sync(self._location / name)
        self._write_manifest(name)
        with suppress(OSError):  # it is published: a later build deletes what stays
            (self._location / name / _SIGNATURE).unlink(missing_ok=True)
            for other in self._names():
                if other != name and _GENERATION.fullmatch(other):
                    _delete_unread(self._location / other)

    def withdraw(self, state: bytes | None) -> None:
        """Let there be no index, unless another state than this one has been published; readers
        keep their generation. Raises OSError."""
        if published_state(self._location) == state:
            (self._location / _MANIFEST).unlink()
            sync(self._location)

    def note_commit(self, name: str) -> None:
        """Let open readers know that the live generation, ``name``, has another commit."""
        self._write_manifest(name)

    def _write_manifest(self, live: str) -> None:
        """Name the live generation, with an id that is new for each state of the index."""
        manifest = {"format": LOCATION_FORMAT, "live": live, "state": uuid.uuid4().hex}
        write_atomically(self._location / _MANIFEST, _line(manifest))

    def _names(self) -> list[str]:
        return sorted(os.listdir(self._location))


def _unfinished(location: Path) -> list[Path]:
    """Return the generations that were begun and are not live."""
    try:
        live = _live_name(location)
    except IndexDamagedError:
        live = None
    return [
        path
        for path in sorted(location.iterdir())
        if _GENERATION.fullmatch(path.name)
        and path.name != live
        and not path.is_symlink()
        and (path / _SIGNATURE).is_file()
    ]


def _delete_unread(generation: Path) -> None:
    """Delete a generation that no reader holds; a later build deletes the others."""
    if generation.is_symlink() or not generation.is_dir():
        return
    try:
        descriptor = open_plain(generation / _IN_USE, os.O_RDWR)
    except FileNotFoundError:
        shutil.rmtree(generation, ignore_errors=True)
        return
    try:
        if try_lock(descriptor):
            shutil.rmtree(generation, ignore_errors=True)
    finally:
        os.close(descriptor)


def _read_signature(generation: Path) -> dict[str, Any]:
    try:
        loaded: Any = json.loads(read_plain(generation / _SIGNATURE))
    except (OSError, ValueError, RecursionError):
        loaded = None
    return cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}


def _plain(signature: Mapping[str, Any]) -> dict[str, Any]:
    """Return the signature as a file holds it."""
    return json.loads(json.dumps(dict(signature), sort_keys=True))


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True).encode() + b"\n"
