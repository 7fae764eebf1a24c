"""Optional dependencies, and the errors that name the line to install them."""

from __future__ import annotations

import importlib.util

from arag_search.errors import MissingExtraError


def missing_extra(name: str, package: str) -> MissingExtraError:
    """Return the error to raise if ``package``, which extra ``name`` installs, is not importable.

    Raise it ``from`` the ImportError if that says more than that the package is missing.
    """
    return MissingExtraError(
        f"{package} is not installed.",
        where=f'extra "{name}" of arag-search',
        do=f'Install the extra: pip install "arag-search[{name}]"',
    )


def check_extra(name: str, package: str, module: str | None = None) -> None:
    """Raise MissingExtraError unless ``module`` (default ``package``) is installed. Imports
    nothing."""
    if importlib.util.find_spec(module or package) is None:
        raise missing_extra(name, package)
