"""The environment variables with the key and the base URL of an endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

KEY_VARIABLES = ("ARAG_API_KEY", "OPENAI_API_KEY")
BASE_URL_VARIABLES = ("ARAG_BASE_URL", "OPENAI_BASE_URL")
OPENAI_URL = "https://api.openai.com/v1"


def first_set(variables: Mapping[str, str], names: Sequence[str]) -> tuple[str, str]:
    """Return value and name of the first variable that is set; two empty strings if none is.

    An empty variable counts as unset.
    """
    for name in names:
        value = variables.get(name, "").strip()
        if value:
            return value, name
    return "", ""
