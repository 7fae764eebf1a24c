"""Names and docstrings keep to plain English: the checks that a program can make."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("arag_search", "index_jobs", "bench", "tests")

NO_NAMES = frozenset(("one", "each", "found", "it", "came", "told"))
"""Words that say nothing of what a variable holds."""
NO_VERBS = frozenset(
    """
    a an the what whether which who whom whose where when how why those these this that all any its
    their every each it they if as at in on of for from with without by between within until after
    before because and or but both some several many is are was were has have can may must should
    makes gives says tells takes
    """.split()  # noqa: SIM905
)
"""Words that do not begin a sentence whose verb says what a function does."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and fault of every name and docstring that breaks the rules."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in NO_NAMES:
                yield node.lineno, f"the name {name}"
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not is_property(node):
                first = (ast.get_docstring(node) or "Return").split()[0].strip("`.,:;").lower()
                if first in NO_VERBS:
                    yield node.lineno, f"the docstring of {node.name} begins with {first!r}"
            case _:
                pass


def is_property(function: Function) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


@pytest.mark.parametrize("folder", FOLDERS)
def test_variables_are_nouns_and_docstrings_of_functions_begin_with_a_verb(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, fault in faults(ast.parse(path.read_text("utf-8")))
    ]
    assert wrong == []


def test_a_bad_name_and_a_headless_docstring_are_seen() -> None:
    source = 'def f(each):\n    """What comes of it."""\n    found = each\n'
    assert [line for line, _ in faults(ast.parse(source))] == [1, 1, 3]
