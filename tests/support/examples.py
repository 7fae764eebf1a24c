"""How many examples a property is tried on: all in CI, fewer while somebody waits."""

import os

_SHARE_WITHOUT_CI = 10
_LEAST = 3


def examples(in_ci: int) -> int:
    """Return so many in CI, and a tenth elsewhere, but at least 3."""
    if os.environ.get("CI"):
        return in_ci
    return min(in_ci, max(_LEAST, -(-in_ci // _SHARE_WITHOUT_CI)))
