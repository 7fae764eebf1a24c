"""Optional dependencies, and the errors that name the line to install them.

The line depends on how the program was installed: in a clone, as a tool of uv, or in another
environment. Nothing is published under the project's name on a package index, so the line names the
folder or wheel from which the program was installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from arag_search.errors import MissingExtraError

_PACKAGE = "arag-search"
_ROOT = Path(__file__).parents[2]


def missing_extra(name: str, package: str) -> MissingExtraError:
    """Return the error to raise if ``package``, which extra ``name`` installs, is not importable.

    Raise it ``from`` the ImportError if that says more than that the package is missing.
    """
    return MissingExtraError(
        f"{package} is not installed.",
        where=f'extra "{name}" of {_PACKAGE}',
        do=f"Install the extra: {install_line(name)}",
    )


def check_extra(name: str, package: str, module: str | None = None) -> None:
    """Raise MissingExtraError unless ``module`` (default ``package``) is installed. Imports
    nothing."""
    if importlib.util.find_spec(module or package) is None:
        raise missing_extra(name, package)


def install_line(extra: str) -> str:
    """Return the command that adds an extra to this installation and keeps the extras it has."""
    if Path(sys.prefix) == _ROOT / ".venv":
        place = "" if Path.cwd().is_relative_to(_ROOT) else f" --project {shlex.quote(str(_ROOT))}"
        return f"uv sync{place} --inexact --extra {extra}"
    source = _installed_from()
    receipt = Path(sys.prefix) / "uv-receipt.toml"
    if receipt.is_file():
        extras = ",".join(dict.fromkeys((*_extras_of_tool(receipt), extra)))
        return f'uv tool install "{source}[{extras}]"'
    with_pip = importlib.util.find_spec("pip") is not None
    installer = "pip install" if with_pip else f"uv pip install --python {shlex.quote(sys.prefix)}"
    return f'{installer} "{source}[{extra}]"'


def _installed_from() -> str:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = distribution(_PACKAGE).read_text("direct_url.json")
        address = urlsplit(str(json.loads(recorded or "")["url"]))
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        return _PACKAGE
    if address.scheme == "file":
        return os.path.normpath(unquote(address.path))
    return _PACKAGE


def _extras_of_tool(receipt: Path) -> list[str]:
    import tomllib

    try:
        content = tomllib.loads(receipt.read_text("utf-8"))
        return [
            extra
            for requirement in content["tool"]["requirements"]
            if requirement["name"] == _PACKAGE
            for extra in requirement.get("extras", [])
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
