"""arag-search demo: index the sample corpus, search it, and answer questions."""

from __future__ import annotations

import shlex
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from arag_search.agent.loop import Agent
from arag_search.agent.models.choose import HOW_TO_SET, OFFLINE, choose_model
from arag_search.cli.output.answers import answer_text, step_line, totals_line
from arag_search.cli.output.printing import print_text
from arag_search.errors import BuildError, IndexExistsError
from arag_search.questions.files import load_questions
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.cache import cache_folder
from arag_search.tools.preset_files import load_preset
from arag_search.tools.toolbox import Toolbox
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.metadata import parse_metadata

QUESTIONS = ("s06", "s11", "s01")
"""Sample questions: a relation, a comparison, and a question of two hops."""
PRESET = "logical_read"
SAMPLE_METADATA = "year:number,kind:keyword"
QUERIES = (
    ("A broad query finds many passages. The first line says how the query was understood.",
     "vivaldi opera"),
    ("A narrow query: a phrase AND a prefix.", '"antonio vivaldi" AND librett*'),
    (
        "A query that excludes, with NOT on a field, and filters by metadata.",
        '"antonio vivaldi" AND librett* AND year:>=1690 NOT title:griselda',
    ),
    (
        "The reply to a query that matches nothing says which part is to blame.",
        '"antonio vivaldi" AND title:librettist',
    ),
    ("A query with mistakes is not run: all of them are listed, with a corrected query.",
     "vivaldi OR NOT opera OR author:Walker"),
)  # fmt: skip


def demo_command(
    to: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the demo's index.  [default: in the cache of arag-search]",
            metavar="INDEX",
        ),
    ] = None,
) -> int:
    """Index the sample corpus, search it, and answer questions from it.

    It runs five queries and shows the replies that a model would get. One query is broad, one is
    narrow, one excludes, one matches nothing and one has mistakes. Then the agent answers three
    questions, and you see what to type next. This takes seconds and needs no key, no server and no
    installed Java: built-in rules stand in for a language model (offline).
    """
    location = to or cache_folder() / "demo-index"
    options = BuildOptions(
        metadata=parse_metadata(SAMPLE_METADATA), language="en", overwrite=to is None
    )
    with as_file(files("arag_search") / "sample" / "corpus.jsonl") as corpus:
        try:
            report = build_index([str(corpus)], location, options)
        except (IndexExistsError, BuildError) as error:
            if isinstance(error, IndexExistsError) or not error.do:  # there is no --overwrite here
                error.do = "Name a folder that does not exist yet: arag-search demo --to INDEX"
            raise
    print_text(
        f"The sample corpus: {report.documents} short articles with two-hop links, "
        f"near-duplicate names and distractors, indexed in {report.seconds:.1f} s."
    )
    with open_index(location) as index:
        tools = Toolbox(index)
        shown: list[str] = []
        for about, query in QUERIES:
            result = tools.call("logical_search", {"query": query, "top_k": 2})
            shown.extend(result.ids)
            print_text(
                f"\n{about}\n> logical_search {query}\n{result.text}\n"
                f"  ({result.status}, {result.tokens} tokens)"
            )
        in_full = Toolbox(index).call("chunk_read", {"chunk_ids": [shown[0]]})
        print_text(f"\nA passage in full.\n> chunk_read {shown[0]}\n{in_full.text}")
        _answer(index)
    name = shlex.quote(str(location))
    print_text(
        "\nNext, on this index:\n"
        f"  arag-search search {name} 'griselda AND (libretto OR librettist) NOT title:scarlatti'\n"
        f"  arag-search search {name} --tool keyword 'Antonio Vivaldi' libretto\n"
        f"  arag-search check 'vivaldi -opera' --index {name}\n"
        f"  arag-search ask {name} 'Where was the poet who wrote Evangeline born?'\n"
        "and on your own corpus:\n"
        "  arag-search index FOLDER_OR_FILE --to my-index\n"
        "  arag-search search my-index '\"a phrase\" AND word'\n"
        "  arag-search ask my-index 'YOUR QUESTION'"
    )
    return 0


def _answer(index: Index) -> None:
    """Let the agent answer some of the sample questions, with a line for each step."""
    with as_file(files("arag_search") / "sample" / "questions.jsonl") as file:
        questions = {question.id: question for question in load_questions(file)}
    print_text(
        "\nQuestions, answered by the agent with the offline model: built-in rules, no language "
        f"model.\n{HOW_TO_SET}"
    )
    agent = Agent(index, load_preset(PRESET), choose_model(OFFLINE))
    for question_id in QUESTIONS:
        question = questions[question_id]
        print_text(f"\n? {question.text}")
        record = agent.ask(question.text, question_id, lambda step: print_text(step_line(step)))
        print_text(f"{answer_text(record, index)}\n  ({totals_line(record, OFFLINE)})")
