"""A public name has one meaning in the core: no two modules of its five rooms define it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "arag_search"
ROOMS = ("query", "plan", "search", "engines", "vectors")


def public_names(module: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield each public name that a module defines, and whether it is a function."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, isinstance(node, ast.FunctionDef)
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            yield from ((of.id, False) for of in ast.walk(target) if isinstance(of, ast.Name))


def test_a_public_name_is_defined_once_in_the_core() -> None:
    """Check all but the functions of one protocol: those of modules of one name, an engine each."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    functions: set[tuple[str, str]] = set()
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            for name, is_function in dict(public_names(ast.parse(path.read_text("utf-8")))).items():
                is_other_engine = (path.name, name) in functions
                if is_function:
                    functions.add((path.name, name))
                if not (name.startswith("_") or (is_function and is_other_engine)):
                    places[name].append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
    assert len(places) > 500
