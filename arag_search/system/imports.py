"""Packages of others that are imported without the code of their ``__init__``."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec


def leave_unread(name: str) -> None:
    """Let modules of a package, if it is installed, be imported without its own code, which takes
    long and imports what is not needed. That is run when something asks for a name that only it
    has."""
    parent, _, child = name.rpartition(".")
    if name in sys.modules or (parent and sys.modules.get(parent) is None):
        return
    if (spec := find_spec(name)) is None or spec.loader is None:
        return
    loader, package = spec.loader, module_from_spec(spec)
    known = vars(package)

    def read(attribute: str) -> object:
        del known["__getattr__"]
        loader.exec_module(package)
        return getattr(package, attribute)

    known["__getattr__"] = read
    sys.modules[name] = package
    if parent:
        setattr(sys.modules[parent], child, package)
