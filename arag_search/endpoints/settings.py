"""Where key and base URL of an endpoint come from: the first of some variables that is set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

KEY_VARIABLES = ("ARAG_API_KEY", "OPENAI_API_KEY")
BASE_URL_VARIABLES = ("ARAG_BASE_URL", "OPENAI_BASE_URL")
OPENAI_URL = "https://api.openai.com/v1"


def first_set(variables: Mapping[str, str], names: Sequence[str]) -> tuple[str, str]:
    """The value and name of the first variable that is set; two empty texts if none is.

    What is empty is unset.
    """
    for name in names:
        value = variables.get(name, "").strip()
        if value:
            return value, name
    return "", ""
