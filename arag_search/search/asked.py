"""The arguments of searches: a value for each kind of search, with its checks.

The keyword arguments of Python, the arguments of tools and the options of the command line are made
from the fields of these values. ``Index`` says what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, replace
from typing import Literal, NamedTuple

from arag_search.corpus import is_unicode, nfc
from arag_search.engines.base import Granularity, Matching
from arag_search.errors import ArgumentError
from arag_search.query.filters import Data, filter_text
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.query.reading import Operator
from arag_search.search.counting.reply_forms import (
    LIST_HITS,
    MAX_REACH,
    REPLY_FORMS,
    ReplyForm,
    Show,
    shows,
)
from arag_search.system.value_class import value
from arag_search.vectors.base import VectorUnit

MAX_KEYWORDS = 20
MAX_KEYWORD_CHARACTERS = 200
MAX_TOP_K = 1_000
MAX_TOOL_TOP_K = 20
MAX_TOOL_OFFSET = MAX_REACH - LIST_HITS

Unit = Literal["passages", "sentences"]


@value
class Asked:
    """A page of the hits of a search. Raises ArgumentError for a page out of bounds."""

    _: KW_ONLY
    top_k: int = 5
    offset: int = 0
    filter: str | Data | None = None
    snippets: bool = True

    def __post_init__(self) -> None:
        top_k, offset = self.top_k, self.offset
        if self.filter is not None:
            object.__setattr__(self, "filter", filter_text(self.filter))
        if not 1 <= top_k <= MAX_TOP_K:
            do = "Ask for the rest with offset." if top_k > MAX_TOP_K else ""
            raise ArgumentError(f"top_k is {top_k}.", allowed=f"1 to {MAX_TOP_K:,}", do=do)
        if offset < 0 or offset + top_k > MAX_REACH:
            do = "Narrow the query instead of paging further." if offset > 0 else ""
            raise ArgumentError(
                f"offset is {offset} with top_k {top_k}.",
                allowed=f"offset from 0, and offset + top_k at most {MAX_REACH:,}",
                do=do,
            )

    @property
    def result(self) -> Asked:
        """The same for the first hit: all pages of a result are of one state of an index."""
        return replace(self, top_k=1, offset=0)

    @property
    def is_continued(self) -> bool:
        """Whether this is a further page of a result."""
        return self.offset > 0

    @property
    def form(self) -> ReplyForm:
        """The form of the reply."""
        return REPLY_FORMS["text"]

    @property
    def unit(self) -> Unit:
        """What the total counts."""
        return "passages"


@value
class Search(Asked):
    """A logical search."""

    query: str
    _: KW_ONLY
    default_operator: Operator = "OR"
    granularity: Granularity = "chunk"
    operators: bool = True
    full_text: bool = False
    explain: bool = False
    feedback: bool = True
    sort: str | None = None
    per_document: int | None = None
    relax: bool = False
    branches: bool = False
    as_written: bool = False
    show: Show = "text"
    after: str | None = None
    first_page: int = 0

    def __post_init__(self) -> None:
        Asked.__post_init__(self)
        if self.per_document is not None and not 1 <= self.per_document <= MAX_TOP_K:
            raise ArgumentError(
                f"per_document is {self.per_document}.",
                allowed=f"1 to {MAX_TOP_K:,}",
                do="Leave it out for any number of passages of a document.",
            )
        if self.after is not None and (self.in_ranks or not self.form.in_corpus_order):
            raise ArgumentError(
                "after goes on with a list in corpus order.",
                allowed='show "titles" or "lines" without sort, per_document and offset',
                do="Leave the others out.",
            )
        self.form.check(self)

    @property
    def result(self) -> Search:
        return replace(self, top_k=1, offset=0, after=None, first_page=0)

    @property
    def is_continued(self) -> bool:
        return self.offset > 0 or bool(self.after)

    @property
    def form(self) -> ReplyForm:
        return REPLY_FORMS[self.show]

    @property
    def unit(self) -> Unit:
        return "sentences" if self.granularity == "sentence" else "passages"

    @property
    def in_ranks(self) -> bool:
        """Whether an order or a place in it is asked for, which a list in corpus order lacks."""
        return bool(self.sort or self.per_document or self.offset)


@value
class Keywords(Asked):
    """A search for keywords. Raises ArgumentError for keywords that are not allowed, too."""

    keywords: Sequence[str]
    _: KW_ONLY
    matching: Matching = "token"
    explain: bool = False
    branches: bool = False
    show: Show = "text"

    def __post_init__(self) -> None:
        Asked.__post_init__(self)
        object.__setattr__(self, "keywords", checked_keywords(self.keywords))
        self.form.check(self)

    @property
    def form(self) -> ReplyForm:
        return REPLY_FORMS[self.show]

    @property
    def query(self) -> str:
        """The keywords in quotation marks."""
        return ", ".join(f'"{keyword}"' for keyword in self.keywords)


@value
class Meaning(Asked):
    """A search by vectors of sentences."""

    query: str
    _: KW_ONLY
    where: str | None = None
    names: bool = False
    relax: bool = False


class Naive(Meaning):
    """A search by vectors of passages."""

    __slots__ = ()


@value
class Hybrid(Meaning):
    """A search by words and by vectors."""

    _: KW_ONLY
    vectors: VectorUnit = "passage"
    full_text: bool = False


class Option(NamedTuple):
    """The texts about an argument, and its bounds.

    ``says``: the text for a model; ``help``: for users of the command line, if it differs.
    ``least``, ``most``: the bounds of a tool, which asks for no more than a reply can show.
    """

    says: str
    help: str = ""
    metavar: str | None = None
    least: int | None = None
    most: int | None = None


OPTIONS: Mapping[str, Option] = {
    "query": Option(f"The logical query, at most {MAX_CHARACTERS:,} characters."),
    "top_k": Option(
        "Passages to show.", f"Passages to show, 1 to {MAX_TOP_K:,}.", "N", 1, MAX_TOOL_TOP_K
    ),
    "offset": Option(
        "Passages to skip.",
        f"Passages to skip; offset + top-k is at most {MAX_REACH:,}.",
        "N",
        0,
        MAX_TOOL_OFFSET,
    ),
    "filter": Option(
        "Conditions on metadata that every passage meets, such as doc_id:a; empty for none."
    ),
    "default_operator": Option("What a space between words means."),
    "granularity": Option("", "Whether all conditions must match in one sentence."),
    "explain": Option("", "Show the score of each hit by word and field."),
    "sort": Option(
        "FIELD:asc or FIELD:desc, of the metadata.",
        "Order by a metadata field, such as year:asc or year:desc, instead of by score. Passages "
        "without a value come last.",
        "FIELD[:asc|desc]",
    ),
    "per_document": Option(
        "Most passages per document; 0 for any number.",
        f"Show at most this many passages of a document, 1 to {MAX_TOP_K:,}.",
        "N",
        0,
        MAX_TOOL_TOP_K,
    ),
    "show": Option(*shows("query")),
    "after": Option(
        'What "More:" of a reply says.',
        "With --show titles or lines: go on after the passage with this id, in corpus order.",
        "ID",
    ),
    "where": Option(
        "A logical query that every passage must match; it does not rank. Empty for none.",
        "A logical query that passages must match; it does not rank.",
        "QUERY",
    ),
}
"""The texts and bounds of arguments, by name."""


def checked_keywords(keywords: Sequence[str]) -> tuple[str, ...]:
    """Return the keywords in NFC. Raises ArgumentError for too many, empty or too long ones."""
    if not 1 <= len(keywords) <= MAX_KEYWORDS:
        raise ArgumentError(
            f"There are {len(keywords)} keywords.", allowed=f"1 to {MAX_KEYWORDS} keywords"
        )
    for keyword in keywords:
        if not keyword.strip():
            raise ArgumentError("A keyword is empty.", allowed="words or short phrases")
        if len(keyword) > MAX_KEYWORD_CHARACTERS:
            raise ArgumentError(
                f'The keyword "{keyword[:40]}..." has {len(keyword)} characters.',
                allowed=f"1 to {MAX_KEYWORD_CHARACTERS} characters",
            )
        if not is_unicode(keyword):
            raise ArgumentError(
                "A keyword holds half of a character (a lone surrogate).",
                allowed="valid Unicode",
                do="Leave it out.",
            )
    return tuple(nfc(keyword) for keyword in keywords)
