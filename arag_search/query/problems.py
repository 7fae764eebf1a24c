"""The problems that a query can have, and the messages that describe them.

Every message says what is wrong, what is allowed and what to write instead; ``Problem`` adds the
place. The texts are defined here and, if they are about one operator, in its row
(``operators``).
"""

from __future__ import annotations

from dataclasses import dataclass

from arag_search.errors import AragError
from arag_search.query.limits import (
    MAX_PROBLEMS,
    MAX_SLOP,
    MAX_WEIGHT,
    MIN_PREFIX_CHARACTERS,
    MIN_WEIGHT,
    PREFIX_SHARES,
)
from arag_search.query.regexes import MAX_QUERY_S, MAX_TEXT_S

_MAX_PIECE = 40
_MAX_VALUE = 120
_MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a query: its 1-based column in characters, 0 in data, the piece, the message."""

    column: int
    piece: str
    message: str

    def __str__(self) -> str:
        column = f"column {self.column}, " if self.column else ""
        return f'{column}"{self.piece}": {self.message}'


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
        self, start: int, end: int, message: str, *, mended: bool = True, **values: object
    ) -> None:
        """Record a problem with ``text[start:end]``, whose message is filled in with ``values``;
        ``mended`` says that the corrected query avoids it.

        Raises EndOfReadingError for the last one that is recorded.
        """
        piece = (
            self.text[start : min(end, start + _MAX_PIECE + 1)]
            .encode("utf-8", "replace")
            .decode("utf-8")
        )
        message = fill(message, **values) if values else message
        self.problems.append(Problem(start + 1, shortened(piece), message))
        self.mendable = self.mendable and mended
        if len(self.problems) >= MAX_PROBLEMS:
            raise EndOfReadingError

    def note(self, template: str, **values: object) -> None:
        """Record a note, filled in with ``values``, once."""
        self.notes[fill(template, **values) if values else template] = None


def reason(error: AragError) -> str:
    """Return the message of an error as that of a problem."""
    first, _, rest = error.what.partition(" ")
    what = f"{first.lower()} {rest}" if first in ("A", "An", "The") else error.what
    allowed = error.allowed and f"Allowed: {error.allowed}."
    return " ".join(filter(None, (what, allowed, error.do)))


class EndOfReadingError(Exception):
    """A text has too many problems or spellings; the rest of it is not parsed."""


def shortened(piece: str, limit: int = _MAX_PIECE) -> str:
    """Return a piece of a query for a message, cut after ``limit`` characters."""
    return piece if len(piece) <= limit else piece[: limit - 3] + "..."


def fill(template: str, *, fields: object = "", **values: object) -> str:
    """Fill in a message, pieces of a query shortened. ``fields`` are those of the index."""
    short = {
        name: shortened(value, _MAX_VALUE) if isinstance(value, str) else value
        for name, value in values.items()
    }
    return template.format(fields=fields, **short)


EMPTY_QUERY = "the query is empty. Write at least one word, phrase or field clause."
TOO_LONG = (
    "the query has {count:,} characters; at most {limit:,} are read. Write a shorter "
    "query, or several."
)
TOO_MANY_LEAVES = (
    "the query has {count} words, phrases and clauses; at most {limit} are allowed. Leave out the "
    "least telling ones, or write several queries."
)
TOO_MANY_PREFIXES = (
    "the prefixes of the query count as {count}; at most {limit} are allowed (one of 3 characters "
    f"counts as {PREFIX_SHARES[3]}, one of 4 as {PREFIX_SHARES[4]}). Write longer ones, or whole "
    "words for some."
)
TOO_MANY_WORDS = (
    "the phrases of the query have {count:,} words; at most {limit:,} are allowed (a word with an "
    "apostrophe counts in each of its spellings). Write shorter phrases, or several queries."
)
TOO_DEEP = (
    "parentheses more than {limit} deep. Leave out those that change nothing, or write several "
    "queries."
)
LONE_SURROGATE = (
    "this is half of a character (a lone surrogate). Text must be valid Unicode; leave it out."
)
TRAILING_BACKSLASH = (
    "a backslash at the end makes nothing ordinary. It stands before a character; for a backslash "
    "itself write \\\\."
)

NOT_ALTERNATIVE = (
    "a NOT cannot be an alternative of OR; alone it matches nearly every passage. Write AND NOT, "
    "or a space before NOT."
)
MODIFIER_ALTERNATIVE = (
    "PREFER and DEMOTE cannot be an alternative of OR. Write them after a space, for everything in "
    "the parentheses, or after AND, for the clauses that it joins."
)
SEVERAL_MODIFIERS = (
    "several of NOT, PREFER and DEMOTE before one clause. Each clause takes one; an option of a "
    'command is a phrase, such as "--all".'
)
ONLY_MODIFIERS = (
    "there is nothing to find here, only to exclude, prefer or demote. Add a word, phrase or field "
    "clause of its own."
)
SCORING_IN_CONDITION = (
    "a weight, PREFER or DEMOTE within {within}, where nothing is scored. Leave it out, or write "
    "it outside; a factor stands directly after DEMOTE, as in DEMOTE^0.2 x."
)
PREFER_WITHOUT_SCORE = (
    "a PREFER of metadata or a pattern, which has no score to add. Require it with AND, or DEMOTE "
    "the others."
)
NOTHING_LEFT = (
    "{operator} has nothing on its left. It stands between two clauses; leave it out, or write "
    "\\{operator} to search the word."
)
NOTHING_RIGHT = (
    "{operator} has nothing on its right. It stands before a clause; leave it out, or write "
    "\\{operator} to search the word."
)
OPERATORS_OFF = (
    "operators are off here. Words, phrases, fields and weights are allowed; write them with "
    "spaces between."
)
PLUS = (
    "+ is not an operator here. Join what must be found with AND, or write \\+ for the character."
)

UNKNOWN_FIELD = 'there is no field "{name}"{near}. Fields: {fields}. Text with a colon is quoted.'
FIELD_IN_FIELD = (
    "a field inside the parentheses of {outer}:. These cover one field; write the "
    "clause outside them."
)
BLANK_AFTER_FIELD = (
    "a blank after the colon. Write {name}:{value} to search the field, or {name}\\: for the word."
)
EMPTY_FIELD = (
    "{name}: has nothing after it. Write a word, phrase or group directly after the colon, or "
    "{name}\\: for the word."
)
SPACED_CLAUSE = (
    "a clause of a field is written without blanks, and values are compared after its colon. "
    "Write {clause}."
)
SECOND_COLON = "a second colon. A field takes one word, phrase or group; quote text with a colon."
NOT_INSIDE_FIELD = "a NOT between field and word. Write NOT {name}:{value}."

NO_TOKEN = (
    "there is no letter or digit in it, so it finds nothing. Write a word with letters or digits."
)
SIGNS = (
    "there is no letter or digit in it, and signs are not indexed. Write the pattern {pattern}, "
    "beside a word that narrows the search."
)
EMPTY_PHRASE = "an empty phrase. Write words between the quotes, or leave it out."
EMPTY_GROUP = "empty parentheses. Write clauses between them, or leave them out."
UNCLOSED_QUOTE = 'a quote that is not closed. Write a second ", or \\" for the character.'
UNCLOSED_GROUP = "a parenthesis that is not closed. Write ), or \\( for the character."
UNOPENED_GROUP = "a parenthesis that was not opened. Write ( before it, or \\) for the character."

SUFFIX = (
    f"^ takes a number from {MIN_WEIGHT:g} to {MAX_WEIGHT:g} after a clause, as in a^2, and ~ "
    f'before it 1 or 2 after a word, 0 to {MAX_SLOP} after a phrase, as in "a b"~3^2; for the '
    "characters write \\^ and \\~."
)
NO_SCORE = "a weight or ~ on what has no score: metadata and patterns only filter. Leave it out."
PREFIX_TOKENS = (
    "a prefix must be one word, and this is split into several. Write the whole words before it, "
    "and a prefix only of the last one, or no *."
)
STAR_IN_PHRASE = (
    "a * inside a phrase. Prefixes stand outside quotes: write the words with AND, or \\* for the "
    "character."
)
_WILDCARD = (
    "a wildcard that is not at the end. Only word* is allowed, with at least "
    f"{MIN_PREFIX_CHARACTERS} characters before the *; "
)
WILDCARD = _WILDCARD + "for the character write \\* or \\?."
INNER_WILDCARD = _WILDCARD + "elsewhere write a pattern, such as {pattern}."
BARE_STAR = "a * alone. It would match every passage; write the word or prefix that is sought."
TOO_MANY_FOR_PATTERN = (
    "a pattern is looked for in the texts that match the rest of the query, and these are more "
    "than {limit:,} {unit}, the most that are read. Add a word or phrase with AND, or a filter."
)
SLOW_PATTERN = (
    f"a pattern takes too long: at most {MAX_TEXT_S * 1000:.0f} ms for a text and {MAX_QUERY_S:g} "
    "s for a query. Write a simpler one, without repetitions in repetitions, or add a word or "
    "phrase with AND."
)
NOTE_UNMARKED = (
    f"patterns took {MAX_QUERY_S:g} s: some passages are shown without marks, from their beginning."
)

WILDCARD_IN_VALUE = (
    "a prefix or wildcard on the metadata field {name}. Its values are matched whole; write the "
    "value, or several with OR."
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
    "this is not a range. Write {name}:[low TO high], with * for an open end and {{ }} to exclude "
    "a bound."
)
RANGE_ON_TERMS = "a range on the {1} field {0}. Its values are matched whole; write {2}."
NOT_A_VALUE = "{0} is a {1} field, and this is not a {1}. Write {2}."
INEXACT_NUMBER = (
    "an integer beyond 9,007,199,254,740,992, which a number field does not tell apart from its "
    "neighbours. Declare {name} as a keyword for ids, and build the index again."
)
TEXT_IN_SCOPE = (
    "a filter searches no text. Metadata clauses are allowed, with AND, OR and NOT; "
    "fields: {fields}."
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
