"""Packages of others that are imported without their code, or without the code of ``__init__``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


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


def import_building_late(name: str) -> None:
    """Import a module and the packages above it. Models of pydantic that are defined in the module,
    and in what it imports, are built when they are first used."""
    from pydantic import BaseModel

    import_module(name.rpartition(".")[0])
    BaseModel.model_config["defer_build"] = True
    try:
        import_module(name)
    finally:
        del BaseModel.model_config["defer_build"]


def import_without(name: str, *packages: str) -> None:
    """Import a module, but not the code of other packages whose names it imports. This code is read
    when a name is called, or asked for an attribute or instances. It is read at once if the module
    does more with a name during its import. Packages that are imported already are left alone."""
    later = _Later(tuple(f"{package}." for package in packages if package not in sys.modules))
    sys.meta_path.insert(0, later)
    try:
        import_module(name)
    except Exception:
        later.end()
        import_module(name)


class _Later(Loader):
    """An import hook for packages, whose modules have any name."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if self._has(name) else None

    def exec_module(self, module: ModuleType) -> None:
        def named(attribute: str) -> _Named:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            return _Named(lambda: self._read(module.__name__, attribute))

        vars(module)["__getattr__"] = named

    def end(self) -> None:
        """Let the packages be imported as they are from now on."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            for name in filter(self._has, list(sys.modules)):
                del sys.modules[name]

    def _has(self, name: str) -> bool:
        return f"{name}.".startswith(self._packages)

    def _read(self, module: str, attribute: str) -> Any:
        self.end()
        read = import_module(module)
        return getattr(read, attribute, None) or import_module(f"{module}.{attribute}")


class _Named:
    """A name of a package that is not read yet."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._read()(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read(), name)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._read())

    def __or__(self, other: Any) -> Any:
        return _Named(lambda: self._read() | other)
