"""The table of the forms of reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from arag_search.search.shown.counts import Counts
from arag_search.search.shown.form import MAX_LISTED, MAX_REACH, Form
from arag_search.search.shown.lines import Lines

Show = Literal["text", "titles", "lines", "counts"]
"""What a search shows of what it finds."""
FORMS: Mapping[str, Form] = {
    "text": Form(is_list=False, in_corpus_order=False),
    "titles": Form("", "ids and titles", reads_text=False),
    "lines": Lines(
        "sentences that match",
        "each sentence that matches, with the name of its entry",
        reads_whole=True,
    ),
    "counts": Counts(
        "matches of each document",
        "documents, each with the number of its matches, by their best passages",
        in_corpus_order=False,
        reads_text=False,
        of_documents=True,
        without=("keywords", "per_document", "after"),
    ),
}


def forms_with(argument: str) -> dict[str, Form]:
    """Return the forms that go with an argument of a search."""
    return {name: form for name, form in FORMS.items() if argument not in form.without}


def shows(argument: str = "query") -> tuple[str, str]:
    """Return what a model reads about the forms that go with an argument, and what a user does."""
    lists = {name: form for name, form in forms_with(argument).items() if form.is_list}
    says = "; ".join(", ".join(filter(None, (name, form.says))) for name, form in lists.items())
    help = ", ".join(f"{name} lists {form.help}" for name, form in lists.items())
    return (
        f"Lists of {MAX_LISTED}: {says}.",
        f"{help}. All count all matches; more than {MAX_REACH:,} titles or lines are in corpus "
        "order, with --tool logical.",
    )
