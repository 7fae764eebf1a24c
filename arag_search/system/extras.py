"""Parts of the installation that not everybody has: which line installs them."""

from __future__ import annotations

import importlib.util

from arag_search.errors import MissingExtraError


def missing_extra(name: str, package: str) -> MissingExtraError:
    """The error to raise where ``package`` cannot be imported, which extra ``name`` would bring.

    Raise it ``from`` the ImportError where that says more than that the package is not there.
    """
    return MissingExtraError(
        f"{package} is not installed.",
        where=f'extra "{name}" of arag-search',
        do=f'Install the extra: pip install "arag-search[{name}]"',
    )


def check_extra(name: str, package: str, module: str | None = None) -> None:
    """Raise MissingExtraError unless ``module`` (else ``package``) is there. Imports nothing."""
    if importlib.util.find_spec(module or package) is None:
        raise missing_extra(name, package)
