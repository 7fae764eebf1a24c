"""The choice of an encoder by its name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Unpack

from arag_search.endpoints.calls import BASE_URL_VARIABLES, KEY_VARIABLES, OPENAI_URL, first_set
from arag_search.errors import ArgumentError, ConfigError
from arag_search.vectors.base import Encoder, EncoderIdentity, EncoderOptions
from arag_search.vectors.encoders.endpoint import (
    BASE_URL_VARIABLE,
    KEY_VARIABLE,
    MAX_TOKENS_VARIABLE,
    EndpointEncoder,
)
from arag_search.vectors.encoders.hashing import DEFAULT_DIMENSION, HashingEncoder
from arag_search.vectors.encoders.onnx import PREFIX, OnnxEncoder, runs_by_onnx
from arag_search.vectors.encoders.prefixed import EncodingFunction, FunctionEncoder
from arag_search.vectors.encoders.sentence_transformer import (
    AUTO_DEVICE,
    SentenceTransformerEncoder,
)

DEFAULT_ENCODER = "Qwen/Qwen3-Embedding-0.6B"
HASHING = "hashing"
ENDPOINT_PREFIX = "endpoint:"
_ALLOWED = (
    f"the name of a model (such as {DEFAULT_ENCODER}), a folder, an installed package, "
    "onnx:MODEL, endpoint:MODEL, http(s)://HOST/v1#MODEL, hashing or hashing:DIMENSION"
)


def open_again(made_by: EncoderIdentity, **options: Unpack[EncoderOptions]) -> Encoder:
    """Open the encoder of existing vectors. Raises what ``open_encoder`` raises, and ArgumentError
    if a program gave the encoder as an object."""
    if made_by.kind not in (HASHING, "endpoint", "onnx", "sentence-transformers"):
        raise ArgumentError(
            f"The vectors were made by {made_by.name}, an object of a program.",
            allowed="the same encoder",
            do="Give it: open_index(..., encoder=...); for updates AddOptions(encoder=...).",
        )
    return open_encoder(made_by.name, **{**made_by.options, **options})


def open_encoder(
    name: str,
    function: EncodingFunction | None = None,
    dimension: int = 0,
    **options: Unpack[EncoderOptions],
) -> Encoder:
    """Open the encoder of a name, or make one from a ``function``, with any name. The function gets
    a list of texts and returns what ``numpy.asarray`` makes their vectors, of floats and of this
    ``dimension``.

    ``hashing`` or ``hashing:DIMENSION`` is the fake encoder. ``endpoint:MODEL`` is a model of an
    OpenAI-compatible endpoint. Key and base URL are ARAG_EMBEDDING_API_KEY and
    ARAG_EMBEDDING_BASE_URL, otherwise the chat model's. ``https://HOST/v1#MODEL`` contains the base
    URL. The chat model's key is sent to the chat model's base URL and to no other. Texts for an
    endpoint are cut to ARAG_EMBEDDING_MAX_TOKENS, else to what is known of the model. Any other
    name is a model of sentence-transformers: a folder, an installed package with a model, or a name
    on the hub. It is run by its ONNX files if it is written ``onnx:MODEL``, if it has no others, or
    if nothing that runs others is installed.

    Raises ArgumentError, ConfigError, MissingExtraError and what the encoders raise.
    """
    name, batch_size = name.strip(), options.get("batch_size")
    if batch_size is not None and batch_size < 1:
        raise ArgumentError(f"batch_size is {batch_size}.", allowed="1 or more")
    if unknown := options.keys() - EncoderOptions.__annotations__.keys():
        raise TypeError(f"open_encoder() has no argument {', '.join(sorted(unknown))}")
    if not name:
        raise ArgumentError("The encoder has no name.", allowed=_ALLOWED)
    if function is not None:
        _check_unused(name, options, "device", "batch_size")
        return FunctionEncoder(name, function, dimension, options)
    kind = name.partition(":")[0]
    if kind == HASHING:
        _check_unused(name, options, "device", "query_prefix", "document_prefix")
        return HashingEncoder(_hashing_dimension(name))
    if kind in ("endpoint", "http", "https"):
        _check_unused(name, options, "device")
        model, base_url, key = endpoint_address(name, os.environ)
        tokens = _max_tokens()
        return EndpointEncoder(
            model, base_url=base_url, key=key, encoding=options, max_tokens=tokens
        )
    if name.startswith(PREFIX) or runs_by_onnx(name):
        if options.get("device") != "cpu":
            _check_unused(name, options, "device")
        return OnnxEncoder(name, **options)
    return SentenceTransformerEncoder(name, **options)


def _hashing_dimension(name: str) -> int:
    _, colon, digits = name.partition(":")
    if colon and not (digits.isascii() and digits.isdecimal()):
        raise ArgumentError(f"Encoder {name!r} names no dimension.", allowed=_ALLOWED)
    return int(digits) if colon else DEFAULT_DIMENSION


def endpoint_address(name: str, variables: Mapping[str, str]) -> tuple[str, str, str]:
    """Return model, base URL and key ("" for none) of an endpoint's encoder, by its name.

    Raises ArgumentError and ConfigError, as ``open_encoder`` does.
    """
    own_key, _ = first_set(variables, (KEY_VARIABLE,))
    chat_key, _ = first_set(variables, KEY_VARIABLES)
    chat_url, _ = first_set(variables, BASE_URL_VARIABLES)
    if name.startswith(ENDPOINT_PREFIX):
        model = name.removeprefix(ENDPOINT_PREFIX).strip()
        base_url = first_set(variables, (BASE_URL_VARIABLE,))[0] or chat_url
    else:
        base_url, _, model = name.partition("#")
    if not model:
        raise ArgumentError(
            "The name of the encoder names no model.",
            allowed="endpoint:MODEL, http(s)://HOST/v1#MODEL",
        )
    if not base_url and not (own_key or chat_key):
        raise ConfigError(
            f"Model {name!r} needs a key or a base URL, and neither is set.",
            do=f"Set {KEY_VARIABLE} or OPENAI_API_KEY, for another endpoint than OpenAI's also "
            f"{BASE_URL_VARIABLE} (a local server needs no key).",
        )
    base_url = base_url or OPENAI_URL
    is_chat_url = base_url.rstrip("/") == (chat_url or OPENAI_URL).rstrip("/")
    return model, base_url, own_key or (chat_key if is_chat_url else "")


def _max_tokens() -> int | None:
    value, _ = first_set(os.environ, (MAX_TOKENS_VARIABLE,))
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and int(value) > 0):
        raise ConfigError(f"{MAX_TOKENS_VARIABLE} is {value!r}.", allowed="1 or more")
    return int(value)


def _check_unused(name: str, options: EncoderOptions, *names: str) -> None:
    unused = [option for option in names if options.get(option) not in (None, "", AUTO_DEVICE)]
    if unused:
        kind = name.partition(":")[0]  # no more, since an address may hold a password
        raise ArgumentError(
            f"Encoders of {kind} have no options: {', '.join(unused)}.",
            do="Leave them out, or name a model that runs in this process.",
        )
