"""The problems that a query can have, and the messages that describe them.

Every message says what is wrong, what is allowed and what to write instead; ``Problem`` adds the
place. All texts about reading a query are here, also of its notes. Advice words its own notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from arag_search.errors import AragError, ArgumentError
from arag_search.query.limits import (
    MAX_PROBLEMS,
    MAX_SLOP,
    MAX_WEIGHT,
    MIN_PREFIX_CHARACTERS,
    MIN_WEIGHT,
    PREFIX_SHARES,
)
from arag_search.query.regexes import MAX_QUERY_S, MAX_TEXT_S

MAX_PIECE = 40
_MAX_VALUE = 120
_MAX_LISTED = 20


_WILDCARD = (
    "a wildcard that is not at the end. Only word* is allowed, with at least "
    f"{MIN_PREFIX_CHARACTERS} characters before the *; "
)


class ProblemKind(StrEnum):
    """The kinds of problems: stable names, each with the message that values are filled into.

    The message on an impossible node says only what is wrong; ``NodeError`` adds what is allowed.
    """

    EMPTY_QUERY = "the query is empty. Write at least one word, phrase or condition."
    EMPTY_QUESTION = "the query is empty. Write a question, or a few words."
    TOO_LONG = (
        "the query has {count:,} characters; at most {limit:,} are read. Write a shorter "
        "query, or several."
    )
    TOO_MANY_LEAVES = (
        "the query has {count} words, phrases and conditions; at most {limit} are allowed. Leave "
        "out the least telling ones, or write several queries."
    )
    TOO_MANY_PREFIXES = (
        "the prefixes of the query count as {count}; at most {limit} are allowed (one of 3 "
        f"characters counts as {PREFIX_SHARES[3]}, one of 4 as {PREFIX_SHARES[4]}). Write longer "
        "ones, or whole words for some."
    )
    TOO_MANY_WORDS = (
        "the phrases of the query have {count:,} words; at most {limit:,} are allowed (a word "
        "with an apostrophe counts in each of its spellings). Write shorter phrases, or several "
        "queries."
    )
    TOO_DEEP = (
        "parentheses more than {limit} deep. Leave out those that change nothing, or write several "
        "queries."
    )
    LONE_SURROGATE = (
        "this is half of a character (a lone surrogate). Text must be valid Unicode; leave it out."
    )
    TRAILING_BACKSLASH = (
        "a backslash at the end makes nothing ordinary. It stands before a character; for a "
        "backslash itself write \\\\."
    )

    NOT_ALTERNATIVE = (
        "a NOT cannot be an alternative of OR; alone it matches nearly every passage. Write AND "
        "NOT, or a space before NOT."
    )
    MODIFIER_ALTERNATIVE = (
        "PREFER and DEMOTE cannot be an alternative of OR. Write them after a space, for "
        "everything in the parentheses, or after AND, for the conditions that it joins."
    )
    SEVERAL_MODIFIERS = (
        "several of NOT, PREFER and DEMOTE before one condition. Each condition takes one; an "
        'option of a command is a phrase, such as "--all".'
    )
    ONLY_MODIFIERS = (
        "there is nothing to find here, only to exclude, prefer or demote. Add a word, phrase or "
        "condition to find."
    )
    SCORING_IN_CONDITION = (
        "a weight, PREFER or DEMOTE within {within}, where nothing is scored. Leave it out, or "
        "write it outside; a factor stands directly after DEMOTE, as in DEMOTE^0.2 x."
    )
    PREFER_WITHOUT_SCORE = (
        "a PREFER of metadata or a pattern, which has no score to add. Require it with AND, or "
        "DEMOTE the others."
    )
    NOTHING_LEFT = (
        "{operator} has nothing on its left. It stands between two words or conditions; leave it "
        "out, or write \\{operator} to search the word."
    )
    NOTHING_RIGHT = (
        "{operator} has nothing on its right. It stands before a word or condition; leave it out, "
        "or write \\{operator} to search the word."
    )
    OPERATORS_OFF = (
        "operators are off here. Words, phrases, fields and weights are allowed; write them with "
        "spaces between."
    )
    PLUS = (
        "+ is not an operator here. Join what must be found with AND, or write \\+ for the "
        "character."
    )

    UNKNOWN_FIELD = (
        'there is no field "{name}"{near}. Fields: {fields}. Text with a colon is quoted.'
    )
    FIELD_IN_FIELD = (
        "a field inside the parentheses of {outer}:. These cover one field; write the "
        "condition outside them."
    )
    BLANK_AFTER_FIELD = (
        "a blank after the colon. Write {name}:{value} to search the field, or {name}\\: for the "
        "word."
    )
    EMPTY_FIELD = (
        "{name}: has nothing after it. Write a word, phrase or group directly after the colon, or "
        "{name}\\: for the word."
    )
    SPACED_CLAUSE = (
        "a condition on a field is written without blanks, and values are compared after its "
        "colon. Write {clause}."
    )
    SECOND_COLON = (
        "a second colon. A field takes one word, phrase or group; quote text with a colon."
    )
    NOT_INSIDE_FIELD = "a NOT between field and word. Write NOT {name}:{value}."

    NO_TOKEN = (
        "there is no letter or digit in it, so it finds nothing. Write a word with letters or "
        "digits."
    )
    SIGNS = (
        "there is no letter or digit in it, and signs are not indexed. Write the pattern "
        "{pattern}, beside a word that narrows the search."
    )
    EMPTY_PHRASE = "an empty phrase. Write words between the quotes, or leave it out."
    EMPTY_GROUP = "empty parentheses. Write words between them, or leave them out."
    UNCLOSED_QUOTE = 'a quote that is not closed. Write a second ", or \\" for the character.'
    UNCLOSED_GROUP = "a parenthesis that is not closed. Write ), or \\( for the character."
    UNOPENED_GROUP = (
        "a parenthesis that was not opened. Write ( before it, or \\) for the character."
    )

    SUFFIX = (
        f"^ takes a number from {MIN_WEIGHT:g} to {MAX_WEIGHT:g} after a word, phrase or group, as "
        f"in a^2, and ~ before it 1 or 2 after a word, 0 to {MAX_SLOP} after a phrase, as in "
        '"a b"~3^2; for the characters write \\^ and \\~.'
    )
    NO_SCORE = (
        "a weight or ~ on what has no score: metadata and patterns only filter. Leave it out."
    )
    PREFIX_TOKENS = (
        "a prefix must be one word, and this is split into several. Write the whole words before "
        "it, and a prefix only of the last one, or no *."
    )
    STAR_IN_PHRASE = (
        "a * inside a phrase. Prefixes stand outside quotes: write the words with AND, or \\* for "
        "the character."
    )
    WILDCARD = _WILDCARD + "for the character write \\* or \\?."
    INNER_WILDCARD = _WILDCARD + "elsewhere write a pattern, such as {pattern}."
    BARE_STAR = "a * alone. It would match every passage; write the word or prefix that is sought."
    TOO_MANY_FOR_PATTERN = (
        "more than {limit:,} {unit} may match by the rest of the query and the letters of the "
        "pattern; no more are read. Add a word or phrase with AND, a filter, or three letters in a "
        "row."
    )
    SLOW_PATTERN = (
        f"a pattern takes too long: at most {MAX_TEXT_S * 1000:.0f} ms for a text and "
        f"{MAX_QUERY_S:g} s for a query. Write a simpler one, without repetitions in repetitions, "
        "or add a word or phrase with AND."
    )

    WILDCARD_IN_VALUE = (
        "a prefix or wildcard on the metadata field {name}. Its values are matched whole; write "
        "the value, or several with OR."
    )
    ADDITIONS_OFF = (
        "patterns and fuzzy words are off here. Write words, with OR between their spellings, or "
        "prefixes such as librett*; for the characters write \\/ and \\~."
    )

    RANGE_ON_TEXT = (
        "a range without a number or date field before it. Write it after one, as in year:[1670 TO "
        "1680]; for text write words, for the characters \\[."
    )
    RANGE_SYNTAX = (
        "this is not a range. Write {name}:[low TO high], with * for an open end and {{ }} to "
        "exclude a bound."
    )
    RANGE_ON_TERMS = (
        "a range on the {type} field {name}. Its values are matched whole; write {values_are}."
    )
    NOT_A_VALUE = "{name} is a {type} field, and this is not a {type}. Write {values_are}."
    INEXACT_NUMBER = (
        "an integer beyond 9,007,199,254,740,992, which a number field does not tell apart from "
        "its neighbours. Declare {name} as a keyword for ids, and build the index again."
    )
    TEXT_IN_SCOPE = (
        "a filter searches no text. Conditions on metadata are allowed, with AND, OR and NOT; "
        "fields: {fields}."
    )

    # Nodes that cannot be

    SLOP = "A slop of {slop}."
    SLOP_OF_ONE_WORD = "A ~ after a phrase of one word."
    PREFIX = 'The prefix "{text}*".'
    FUZZY = 'The word "{text}~{edits}".'
    PATTERN = "The pattern /{pattern}/: {reason}."
    PATTERN_WITH_BLANK = "A pattern with a blank at an end."
    EMPTY_VALUE = "An empty value of {name}."
    EMPTY_RANGE = "A range that holds nothing."
    FACTOR = "A DEMOTE by {factor:g}."
    WEIGHT = "A weight, multiplied along its path, of {weight:g}."
    WEIGHT_OF_METADATA = "A weight on metadata."
    WEIGHT_OF_CONDITION = "A weight on a condition without a score."
    NOT_ALLOWED = "{what}"
    """All other problems, such as errors in data."""

    # Operators

    UNRANKED_PREFER = (
        "a filter has no scores, so nothing is preferred in it. Write AND, or leave it out."
    )
    UNRANKED_DEMOTE = "a filter has no scores to lower. Write NOT, or leave it out."
    FACTOR_OF_PREFER = (
        "PREFER takes no number. Write the weight after what is preferred, as in PREFER x^2."
    )
    FACTOR_OF_DEMOTE = (
        "DEMOTE takes a number more than 0 and less than 1, as in DEMOTE^0.2 x; without, it is 0.5."
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a query.

    ``column``: the column of the piece, from 1, in characters; 0 in a filter of data.
    ``piece``: the wrong piece as typed; a long one is cut.
    ``message``: says what is wrong with it, what is allowed, and what to write instead.
    ``kind``: a stable name for programs, from ``ProblemKind``, such as ``UNKNOWN_FIELD``.
    ``values``: the values in the message by their names, such as ``count`` and ``limit``.
    """

    column: int
    piece: str
    message: str
    kind: str
    values: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)

    @classmethod
    def of(cls, column: int, piece: str, kind: ProblemKind, **values: object) -> Problem:
        """Return a problem whose message is filled in with ``values``."""
        message = fill(kind, **values) if values else kind.value
        return cls(column, shortened(_valid(piece)), message, kind.name, values)

    @classmethod
    def of_error(cls, column: int, piece: str, error: ArgumentError) -> Problem:
        """Return the problem with the message of an error."""
        first, _, rest = error.what.partition(" ")
        what = f"{first.lower()} {rest}" if first in ("A", "An", "The") else error.what
        allowed = error.allowed and f"Allowed: {error.allowed}."
        message = _valid(" ".join(filter(None, (what, allowed, error.do))))
        piece = shortened(_valid(piece))
        if isinstance(error, NodeError):
            return cls(column, piece, message, error.kind.name, error.values)
        values = {"what": _valid(what), "allowed": error.allowed, "do": error.do}
        return cls(column, piece, message, ProblemKind.NOT_ALLOWED.name, values)

    def __str__(self) -> str:
        column = f"column {self.column}, " if self.column else ""
        return f'{column}"{self.piece}": {self.message}'


class NodeError(ArgumentError):
    """A node that cannot be. ``kind`` and ``values`` are as in the problem that its text is."""

    def __init__(
        self, kind: ProblemKind, *, allowed: str = "", do: str = "", **values: object
    ) -> None:
        self.kind = kind
        self.values = values
        super().__init__(kind.format(**values), allowed=allowed, do=do)


class QueryError(AragError):
    """A query was rejected. ``problems`` holds all its problems, in order of column; ``mended`` is
    a complete query without them, or None where none can be derived."""

    def __init__(self, query: str, problems: tuple[Problem, ...], mended: str | None) -> None:
        self.query = query
        self.problems = problems
        self.mended = mended
        super().__init__(describe(problems, mended))


def describe(problems: tuple[Problem, ...], mended: str | None) -> str:
    """Return the reply to a query that was not run."""
    many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"Query not run: {many}."]
    lines += [f"{number}. {problem}" for number, problem in enumerate(problems[:_MAX_LISTED], 1)]
    if len(problems) > _MAX_LISTED:
        more = f"{len(problems) - _MAX_LISTED:,}"
        at_least = "at least " if len(problems) >= MAX_PROBLEMS else ""
        lines.append(f"And {at_least}{more} more, further on.")
    if mended is not None:
        lines.append(f"Write: {mended}")
    return "\n".join(lines)


class Findings:
    """The problems and notes of a parse, and whether all problems can be mended."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.problems: list[Problem] = []
        self.notes: dict[str, None] = {}
        self.mendable = True

    def reject(
        self, start: int, end: int, kind: ProblemKind, *, mended: bool = True, **values: object
    ) -> None:
        """Record a problem with ``text[start:end]``, whose message is filled in with ``values``;
        ``mended`` says that the corrected query avoids it.

        Raises EndOfReadingError for the last problem that is recorded.
        """
        self._record(Problem.of(start + 1, self._piece(start, end), kind, **values), mended)

    def refuse(self, start: int, end: int, error: ArgumentError, *, mended: bool = True) -> None:
        """Record the problem of a node that cannot be, as ``reject`` does."""
        self._record(Problem.of_error(start + 1, self._piece(start, end), error), mended)

    def _record(self, problem: Problem, mended: bool) -> None:
        self.problems.append(problem)
        self.mendable = self.mendable and mended
        if len(self.problems) >= MAX_PROBLEMS:
            raise EndOfReadingError

    def _piece(self, start: int, end: int) -> str:
        return self.text[start : min(end, start + MAX_PIECE + 1)]

    def note(self, template: str, **values: object) -> None:
        """Record a note, filled in with ``values``, once."""
        self.notes[fill(template, **values) if values else template] = None


class EndOfReadingError(Exception):
    """A text has too many problems or spellings; the rest of it is not parsed."""


def _valid(text: str) -> str:
    """Return a text without lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def shortened(piece: str, limit: int = MAX_PIECE) -> str:
    """Return a piece of a query for a message, cut after ``limit`` characters."""
    return piece if len(piece) <= limit else piece[: limit - 3] + "..."


def fill(template: str, *, fields: object = "", **values: object) -> str:
    """Fill in a message, pieces of a query shortened. ``fields`` are the fields of the index."""
    short = {
        name: shortened(value, _MAX_VALUE) if isinstance(value, str) else value
        for name, value in values.items()
    }
    return template.format(fields=fields, **short)


NOTE_UNMARKED = (
    f"patterns took {MAX_QUERY_S:g} s: some passages are shown without marks, from their beginning."
)
NOTE_DROPPED = '"{piece}" was left out: it holds nothing to search.'
NOTE_OPTION = (
    '"{option}" was searched as the option of a command; to exclude the word write NOT {word}.'
)
NOTE_PATTERN = '{piece} was searched as a pattern; for the text write "{text}" in quotes.'
NOTE_QUESTION_MARK = 'the "?" after "{word}" was read as punctuation.'
NOTE_LOWER_CASE = '"{word}" was searched as a word; operators are in upper case.'
NOTE_FIELD_COVERS = (
    '{name}: covers only "{word}"; for more words write {name}:(two words) or {name}:"two words".'
)
NOTE_MINUS_NUMBER = (
    '"{piece}" excludes passages with "{word}"; for a number after a hyphen quote it.'
)
NOTE_COLON = 'the colon of "{piece}" was read as punctuation, because no field is meant by it.'
NOTE_VALUE = '"{piece}" was read as {text}.'
NOTE_QUOTES = "{piece} was read as a phrase."
NOTE_SIGNS = "these signs were read as those of the query language: {signs}"
NOTE_COMMA = "{name}:{value} was searched with and without the sign at its end."
NOTE_BACKSLASH = (
    '"{piece}" was read as "{text}": a backslash makes the character after it ordinary; for a '
    "backslash itself write \\\\."
)
NOTE_UNRANKED = "no words to rank by: passages are in corpus order."
NOTE_UNCHECKED_FIELD = (
    'whether an index has a field "{name}" was not checked; its type was guessed.'
)
