"""Choose the model by option or environment, or else the offline one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from arag_search.agent.models.base import ChatModel
from arag_search.agent.models.openai import OpenAIModel
from arag_search.agent.models.replay import RecordingModel, ReplayModel
from arag_search.endpoints.calls import (
    BASE_URL_VARIABLES,
    KEY_VARIABLES,
    OPENAI_URL,
    Retry,
    first_set,
)
from arag_search.errors import ConfigError

OFFLINE = "offline"
REPLAY_PREFIX = "replay:"
MODEL_VARIABLE = "ARAG_MODEL"
HOW_TO_SET = (
    f"Set {MODEL_VARIABLE} and OPENAI_API_KEY, for another endpoint than OpenAI's "
    "also OPENAI_BASE_URL."
)
OFFLINE_NOTE = f"Built-in rules answered (offline), no language model. {HOW_TO_SET}"
"""The note that commands print with answers of the offline model."""


def choose_model(
    model: str | None = None,
    *,
    base_url: str | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    reasoning_effort: str | None = None,
    seed: int | None = None,
    max_tokens: int | None = None,
    timeout_s: float | None = None,
    max_retries: int | None = None,
    allow_offline: bool = True,
    record_replies: Path | str | None = None,
    on_retry: Callable[[Retry], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ChatModel:
    """Return the model that the options and the environment name; None means not given.

    ``model`` is ``offline``, ``replay:FILE`` or the name of an endpoint's model, else the value of
    ARAG_MODEL. Key and base URL are ARAG_API_KEY and ARAG_BASE_URL, else OPENAI_API_KEY and
    OPENAI_BASE_URL; a base URL without a key is a local server. If key, base URL and model are all
    unset and ``allow_offline``, the offline model is chosen. An empty variable counts as unset.
    With ``record_replies``, the replies are also written to that file, for ``replay:``.

    Raises ConfigError if the settings contradict each other.
    """
    variables = os.environ if environment is None else environment
    key, _ = first_set(variables, KEY_VARIABLES)
    name = (model or "").strip() or first_set(variables, (MODEL_VARIABLE,))[0]
    options: dict[str, Any] = {
        "base_url": base_url,
        "temperature": temperature,
        "top_p": top_p,
        "reasoning_effort": reasoning_effort,
        "seed": seed,
        "max_tokens": max_tokens,
        "timeout_s": timeout_s,
        "max_retries": max_retries,
    }
    options = {option: value for option, value in options.items() if value is not None}
    if not name:
        _check_nothing_is_set(variables, base_url, allow_offline)
        name = OFFLINE
    chosen: ChatModel
    if name == OFFLINE:
        _check_unused(name, options)
        from arag_search.agent.models.offline import OfflineModel

        chosen = OfflineModel()
    elif name.startswith(REPLAY_PREFIX):
        _check_unused(REPLAY_PREFIX.rstrip(":"), options)
        file = name.removeprefix(REPLAY_PREFIX)
        if not file:
            raise ConfigError(
                f"{name!r} names no file.",
                allowed=f"{REPLAY_PREFIX}FILE, a file that replies were recorded to",
            )
        chosen = ReplayModel(file)
    else:
        address = base_url or first_set(variables, BASE_URL_VARIABLES)[0]
        if not address and not key:
            raise ConfigError(
                f"Model {name!r} needs a key or a base URL, and neither is set.",
                allowed=f"{OFFLINE}, {REPLAY_PREFIX}FILE, or the name of an endpoint's model",
                do="Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server without a key.",
            )
        options["base_url"] = address or OPENAI_URL
        chosen = OpenAIModel(name, key=key, on_retry=on_retry, **options)
    return chosen if record_replies is None else RecordingModel(chosen, record_replies)


def _check_nothing_is_set(
    variables: Mapping[str, str], base_url: str | None, allow_offline: bool
) -> None:
    set_names = [
        name
        for names in (KEY_VARIABLES, BASE_URL_VARIABLES)
        if (name := first_set(variables, names)[1])
    ]
    if base_url:
        set_names.append("`base_url`")
    if set_names:
        raise ConfigError(
            f"No model is named, but {' and '.join(set_names)} "
            f"{'is' if len(set_names) == 1 else 'are'} set.",
            do=f"Set {MODEL_VARIABLE} or give `model`; `model={OFFLINE}` for the rule-based one.",
        )
    if not allow_offline:
        raise ConfigError(
            "No model is named.",
            allowed=f"{OFFLINE}, {REPLAY_PREFIX}FILE, or the name of an endpoint's model",
            do=f"{HOW_TO_SET} Give `model={OFFLINE}` for the rule-based one.",
        )


def _check_unused(model: str, options: Mapping[str, object]) -> None:
    if options:
        raise ConfigError(
            f"Model {model!r} has no options: {', '.join(options)}.",
            do="Leave them out, or name an endpoint's model.",
        )
