"""Where the files of a sentence-transformers model lie on this machine, and their checksum."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from arag_search.errors import EncoderFilesError

MODULES_FILE = "modules.json"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # of a folder that has both, the first are loaded
INDEX_ENDING = ".safetensors.index.json"
SETTINGS = ("*.json", "*.txt", "*.model")
# Of the files beside the weights, what changes no vector.
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


def local_folder(name: str) -> Path | None:
    """The folder of a model that is named by folder or by the installed package it came in."""
    folder = Path(name).expanduser()
    return folder if folder.is_dir() else packaged_folder(name)


def packaged_folder(name: str) -> Path | None:
    """The folder of the model in an installed package: the outermost that holds modules.json.

    None where no such package is installed, or where it holds no model.
    """
    try:
        files = importlib.metadata.files(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    found = [Path(str(file.locate())).parent for file in files or () if file.name == MODULES_FILE]
    there = [folder for folder in found if (folder / MODULES_FILE).is_file()]
    return min(there, key=lambda folder: (len(folder.parts), folder), default=None)


def revision_of(folder: Path) -> str:
    """SHA-256 over weights and settings of the model in a folder, with their names: 64 hex digits.

    Files that change no vector (a model card, other formats of the weights) do not count, so that
    copies of a model have one revision however they came. Every byte is read: 0.1 s for 90 MB.
    Raises EncoderFilesError for a folder without weights, or one that cannot be read.
    """
    total = hashlib.sha256()
    try:
        files = sorted(_files_of(folder), key=lambda file: file.relative_to(folder).as_posix())
        if not has_weights(files):
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


def has_weights(files: Iterable[Path]) -> bool:
    """Whether one of the files holds weights in a format that is loaded."""
    return any(file.match(kind) for file in files for kind in WEIGHTS)


def is_whole(folder: Path) -> bool:
    """Whether a folder that is fetched file by file has its modules and all of their weights."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    parts = [file.parent / part for file in files for part in _parts_of_weights(file)]
    listed = (folder / MODULES_FILE).is_file()
    return listed and has_weights(files) and all(part.is_file() for part in parts)


def _parts_of_weights(file: Path) -> Iterable[str]:
    """The files that an index of weights names."""
    if not file.name.endswith(INDEX_ENDING):
        return ()
    try:
        return cast(dict[str, dict[str, str]], json.loads(file.read_bytes()))["weight_map"].values()
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()  # whoever loads it says what is wrong


def _files_of(folder: Path) -> Iterator[Path]:
    """Weights and settings at the top, and all the way down in the folders of modules."""
    for part in (folder, *_module_folders(folder)):
        inside = part.iterdir() if part == folder else part.rglob("*")
        files = [one for one in inside if one.is_file()]
        formats = ([one for one in files if one.match(kind)] for kind in WEIGHTS)
        yield from next(filter(None, formats), ())
        for one in files:
            if one.name not in _NO_SETTINGS and any(one.match(kind) for kind in SETTINGS):
                yield one


def _module_folders(folder: Path) -> list[Path]:
    listing = folder / MODULES_FILE
    if not listing.is_file():
        return []
    try:
        modules = cast(list[dict[str, str]], json.loads(listing.read_bytes()))
        paths = {module["path"] for module in modules} - {"", "."}
    except (ValueError, KeyError, TypeError):
        raise EncoderFilesError(
            f"{MODULES_FILE} is no list of modules.", where=str(listing)
        ) from None
    return [folder / path for path in sorted(paths) if (folder / path).is_dir()]


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()
