"""The offline rules, over the sample corpus, answer correctly every question that README, guides,
help texts, docstrings and the demo print."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.choose import choose_model
from arag_search.search.opening import open_index
from arag_search.tools.preset_files import load_preset
from tests.support.commands import Command
from tests.support.guides import GUIDES, guide_text

ROOT = Path(__file__).parents[2]
EXPECTED = {
    "In which city did the playwright who revised the libretto of Antonio Vivaldi's opera Griselda"
    " die?": "Paris",
    "In which town was the engineer who made the original design of the Brooklyn Bridge born?":
        "Mühlhausen",
    "Where was the poet who wrote Evangeline born?": "Portland",
    "Who was born earlier, Domenico Scarlatti or Pietro Metastasio?": "Domenico Scarlatti",
    "Who wrote Evangeline?": "Henry Wadsworth Longfellow",
}  # fmt: skip
"""Each question that is printed somewhere, and its answer by the articles of the sample."""

_PREPOSITION = r"(?:(?:At|By|For|From|In|Of|On|To|With) )?"
_QUESTION = re.compile(
    rf"\b{_PREPOSITION}(?:[Ww]ho|[Ww]hom|[Ww]hose|[Ww]hat|[Ww]hen|[Ww]here|[Ww]hich|[Ww]hy|[Hh]ow)"
    r" [^?\n]{3,}\?"
)
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_QUOTED = re.compile(r"(['\"“])([A-Z][^\n\"“”]*?\?)['\"”]")


def questions_in_guide(text: str) -> set[str]:
    """Return the questions in code and in quotation marks; other prose may contain any
    questions."""
    code = "\n".join(_CODE.findall(text))
    return {
        question
        for part in (code, "\n".join(match[1] for match in _QUOTED.findall(text)))
        for question in questions_in_text(part)
    }


def questions_in_text(text: str) -> set[str]:
    """Return the sentences that begin like a question, in upper case, and end with its mark."""
    return {question for question in _QUESTION.findall(text) if question[0].isupper()}


def strings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a module and, for a command, all texts that it may print."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    of_a_command = path.parent.name == "cli"
    for node in ast.walk(tree):
        if of_a_command and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def questions_in_repository() -> set[str]:
    guides = (questions_in_guide(guide_text(guide)) for guide in GUIDES)
    modules = [
        path
        for room in ("arag_search", "index_jobs")
        for path in sorted((ROOT / room).glob("**/*.py"))
    ]
    texts = (questions_in_guide(f"```{text}```") for path in modules for text in strings(path))
    return set().union(*guides, *texts)


@pytest.fixture(name="demo", scope="module")
def output_of_the_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the demo, and return the index that it leaves and its output."""
    import contextlib
    import io

    from arag_search.cli.app import run

    place = tmp_path_factory.mktemp("demo") / "index"
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert run(["demo", "--to", str(place)]) == 0
    return place, output.getvalue()


def test_every_printed_question_has_an_expected_answer(demo: tuple[Path, str]) -> None:
    printed_questions = questions_in_repository() | questions_in_text(demo[1])
    assert printed_questions == set(EXPECTED)


@pytest.mark.parametrize("question", EXPECTED)
def test_a_printed_question_is_answered_correctly_by_the_rules(
    demo: tuple[Path, str], question: str
) -> None:
    preset = load_preset("logical_read")
    with open_index(demo[0]) as index:
        record = Agent(index, preset, choose_model("offline")).ask(question)
    assert EXPECTED[question] in record.answer_short
    assert record.citation == "cited"


def test_a_command_that_the_demo_suggests_answers_its_question(
    demo: tuple[Path, str], arag: Command
) -> None:
    import shlex

    lines = [line for line in demo[1].splitlines() if " ask " in line and str(demo[0]) in line]
    assert lines
    for line in lines:
        words = shlex.split(line)
        done = arag(*words[1:])
        assert done.code == 0
        assert EXPECTED[words[-1]] in done.out


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("It asks: how many tokens? `ask i 'Who was it?'`", {"Who was it?"}),
        ('As in "Where did she die?" and so on.', {"Where did she die?"}),
        ("```console\nask i \"Of which town is Ann's house a part?\"\n```",
         {"Of which town is Ann's house a part?"}),
        ("What is this? Prose.", set()),
    ],
)  # fmt: skip
def test_questions_of_a_guide_are_those_in_code_and_quotation_marks(
    text: str, questions: set[str]
) -> None:
    assert questions_in_guide(text) == questions
