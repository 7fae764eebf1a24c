"""Test modules import no other test module; what they share is in tests/support, without tests."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
SUPPORT = TESTS / "support"
OTHER_NAMES = ("__init__.py", "conftest.py")


def test_no_test_module_imports_another() -> None:
    imports = [
        f"{path.relative_to(TESTS)} -> {module}"
        for path in sorted(TESTS.rglob("*.py"))
        for module in imported_test_modules(tree_of(path))
    ]
    assert imports == []


def test_every_module_outside_support_holds_tests_and_says_so_in_its_name() -> None:
    misplaced_modules = [
        str(path.relative_to(TESTS))
        for path in sorted(TESTS.rglob("*.py"))
        if SUPPORT not in path.parents and path.name not in OTHER_NAMES
        if not path.name.startswith("test_") or not defined_tests(path)
    ]
    assert misplaced_modules == []


def test_support_holds_no_tests() -> None:
    misplaced_modules = [
        str(path.relative_to(TESTS))
        for path in sorted(SUPPORT.rglob("*.py"))
        if path.name.startswith("test_") or defined_tests(path)
    ]
    assert misplaced_modules == []


def test_an_import_of_a_test_module_is_seen_in_the_code_of_a_child_too() -> None:
    module = "test_build"  # The name is split, so that this module itself passes.
    child = f'CHILD = """\nimport os\nfrom tests.jobs.{module} import x\n"""\n'
    assert list(imported_test_modules(ast.parse(child))) == ["tests.jobs.test_build"]
    direct = f"from tests.jobs import {module}"
    assert list(imported_test_modules(ast.parse(direct))) == ["tests.jobs.test_build"]
    support = ast.parse("from tests.support.builds import corpus")
    assert list(imported_test_modules(support)) == []


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported_test_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the test modules that a module imports, also in a program that it holds as a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from imports_in_lines(node.value)
            continue
        else:
            continue
        yield from (name for name in names if is_test_module(name))


def imports_in_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip().startswith(("import tests", "from tests")):
            try:
                yield from imported_test_modules(ast.parse(line.strip()))
            except SyntaxError:
                continue


def is_test_module(name: str) -> bool:
    return name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")


def defined_tests(path: Path) -> list[str]:
    return [
        node.name
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name.startswith("test_")
    ]
