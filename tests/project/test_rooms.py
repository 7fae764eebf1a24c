"""Imports point down the list of rooms in arag_search/README.md, and no modules form a circle."""

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("arag_search", "index_jobs", "bench")
MAP = ROOT / "arag_search" / "README.md"

Imports = dict[str, set[str]]


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Return the path of every module by its dotted name."""
    paths = (path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {dotted(path.relative_to(root)): path for path in paths}


def dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imports(known: dict[str, Path]) -> Imports:
    """Return, for every module, the modules of ours that it imports anywhere in its source."""
    return {
        name: set(imported_modules(ast.parse(path.read_text("utf-8")), known)) - {name}
        for name, path in known.items()
    }


def imported_modules(tree: ast.Module, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                target = submodule if submodule in known else node.module
                if target in known:
                    yield target


def rooms() -> list[str]:
    """Return the rooms of the map, highest first, as dotted names."""
    table = MAP.read_text("utf-8").partition("\n## Rooms\n")[2].partition("\n## ")[0]
    return [
        path.removesuffix(".py").replace("/", ".")
        for path in re.findall(r"^\| `(.+?)`", table, re.M)
    ]


def room_of(module: str, rooms_of_map: list[str]) -> str | None:
    return next((room for room in rooms_of_map if f"{module}.".startswith(f"{room}.")), None)


def is_entry_point(module: str) -> bool:
    return module in PACKAGES or module.endswith(".__main__")


def upward(graph: Imports, rooms_of_map: list[str]) -> list[str]:
    """Return the imports that point up, as "importer -> imported"."""
    height = {room: -place for place, room in enumerate(rooms_of_map)}
    violations: list[str] = []
    for module, targets in sorted(graph.items()):
        for target in sorted(targets):
            if is_entry_point(module) or is_entry_point(target):
                continue
            above, below = room_of(module, rooms_of_map), room_of(target, rooms_of_map)
            if above is None or below is None or height[above] < height[below]:
                violations.append(f"{module} -> {target}")
    return violations


def test_every_module_is_in_a_room_of_the_map() -> None:
    rooms_of_map = rooms()
    homeless = [
        name for name in modules() if not is_entry_point(name) and not room_of(name, rooms_of_map)
    ]
    assert homeless == []


def test_imports_point_down_the_list_of_rooms() -> None:
    assert upward(imports(modules()), rooms()) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(imports(modules())).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' -> '.join(error.args[1])}") from None


def test_an_import_that_points_up_is_seen_even_inside_a_function() -> None:
    known = {"arag_search.query.tree": Path(), "arag_search.cli.app": Path()}
    tree = ast.parse("def late():\n    from arag_search.cli import app\n")
    graph = {
        "arag_search.query.tree": set(imported_modules(tree, known)),
        "arag_search.cli.app": set(),
    }
    assert upward(graph, rooms()) == ["arag_search.query.tree -> arag_search.cli.app"]
