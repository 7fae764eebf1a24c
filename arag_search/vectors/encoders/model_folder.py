"""The files of a sentence-transformers model on this machine, and their checksum."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import TypeVar, cast

from arag_search.errors import EncoderFilesError

MODULES_FILE = "modules.json"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # if a folder has both, the first are loaded
INDEX_ENDING = ".safetensors.index.json"
SETTINGS = ("*.json", "*.txt", "*.model")
# Settings that do not change vectors.
_NO_SETTINGS = frozenset(
    {
        "data_config.json",
        "eval_results.json",
        "generation_config.json",
        "requirements.txt",
        "train_results.json",
        "trainer_state.json",
    }
)
_READ_BYTES = 1 << 20

AnyPath = TypeVar("AnyPath", bound=PurePath)


def local_folder(name: str) -> Path | None:
    """Return the folder of a model, named by the folder or by an installed package."""
    folder = Path(name).expanduser()
    return folder if folder.is_dir() else packaged_folder(name)


def packaged_folder(name: str) -> Path | None:
    """Return the folder of the model in an installed package: the outermost with modules.json.

    None if no such package is installed, or it contains no model.
    """
    try:
        files = importlib.metadata.files(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    listed = [Path(str(file.locate())).parent for file in files or () if file.name == MODULES_FILE]
    existing = [folder for folder in listed if (folder / MODULES_FILE).is_file()]
    return min(existing, key=lambda folder: (len(folder.parts), folder), default=None)


def revision_of(folder: Path) -> str:
    """Return the SHA-256 (64 hex digits) of the model's weights and settings, with their names.

    Files that do not change vectors (a model card, other formats of the weights) are ignored, so
    that all copies of a model have the same revision. Every byte is read: 0.1 s for 90 MB. Raises
    EncoderFilesError for a folder without weights, or one that cannot be read.
    """
    total = hashlib.sha256()
    try:
        files = sorted(_files_of(folder), key=lambda file: file.relative_to(folder).as_posix())
        if not loaded_weights(files):
            raise EncoderFilesError(
                "The folder holds no weights of a model.",
                where=str(folder),
                allowed="a folder that sentence-transformers saved, with " + " or ".join(WEIGHTS),
            )
        for file in files:
            name = file.relative_to(folder).as_posix()
            total.update(f"{name}\n{_sha256(file)}\n".encode())
    except OSError as error:
        raise EncoderFilesError(
            f"The files of the model cannot be read: {error.strerror}.", where=str(folder)
        ) from error
    return total.hexdigest()


def loaded_weights(files: Iterable[AnyPath]) -> list[AnyPath]:
    """Return the weights among files: for each folder, those of the first format that it has."""
    formats: dict[PurePath, dict[str, list[AnyPath]]] = {}
    for file in files:
        for kind in WEIGHTS:
            if file.match(kind):
                formats.setdefault(file.parent, {}).setdefault(kind, []).append(file)
    return [
        file
        for by_kind in formats.values()
        for file in next(by_kind[kind] for kind in WEIGHTS if kind in by_kind)
    ]


def is_whole(folder: Path) -> bool:
    """Return whether a folder, downloaded file by file, has its modules and all their weights."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    parts = [file.parent / part for file in files for part in _parts_of_weights(file)]
    listed = (folder / MODULES_FILE).is_file()
    return listed and bool(loaded_weights(files)) and all(part.is_file() for part in parts)


def _parts_of_weights(file: Path) -> Iterable[str]:
    """Return the files that an index of weights lists."""
    if not file.name.endswith(INDEX_ENDING):
        return ()
    try:
        return cast(dict[str, dict[str, str]], json.loads(file.read_bytes()))["weight_map"].values()
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()  # loading it reports the problem


def _files_of(folder: Path) -> Iterator[Path]:
    """Yield weights and settings at the top, and at all levels of the folders of modules."""
    for part in (folder, *_module_folders(folder)):
        inside = part.iterdir() if part == folder else part.rglob("*")
        files = [file for file in inside if file.is_file()]
        yield from loaded_weights(files)
        for file in files:
            if file.name not in _NO_SETTINGS and any(file.match(kind) for kind in SETTINGS):
                yield file


def _module_folders(folder: Path) -> list[Path]:
    listing = folder / MODULES_FILE
    if not listing.is_file():
        return []
    try:
        modules = cast(list[dict[str, str]], json.loads(listing.read_bytes()))
        paths = {module["path"] for module in modules} - {"", "."}
    except (ValueError, KeyError, TypeError):
        raise EncoderFilesError(
            f"{MODULES_FILE} is not a list of modules.", where=str(listing)
        ) from None
    return [folder / path for path in sorted(paths) if (folder / path).is_dir()]


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()
