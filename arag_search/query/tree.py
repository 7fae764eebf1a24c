"""The tree of a query: the parser produces it, engines compile it, and it prints back as text.

Nodes are values. A tree that the language rejects cannot be constructed: constructors
raise ArgumentError. Printing is canonical, and ``parse(str(tree)) == tree`` for every tree.

A query is any node but a Modifier. Text leaves (Term, Phrase, Prefix, Fuzzy)
are searched in ``field``, or in title and content if it is None, and so is a Regex. Metadata leaves
(KeywordEquals, Range) filter; they and a Regex never score. An And holds its positive children
first, then its Modifiers: NOTs, PREFERs and DEMOTEs, each kind in the order typed.
"""

from __future__ import annotations

import dataclasses
import re
from itertools import chain
from typing import Literal, assert_never, cast

from arag_search.errors import ArgumentError
from arag_search.query.analysis import (
    checked_text,
    has_token,
    is_fuzzy,
    is_prefix,
    spellings_of,
    units,
)
from arag_search.query.field_types import FIELD_TYPES, MetadataType
from arag_search.query.fields import is_field_name
from arag_search.query.limits import (
    DEFAULT_FACTOR,
    FUZZY_WORDS,
    MAX_SLOP,
    MAX_WEIGHT,
    MIN_FUZZY_CHARACTERS,
    MIN_PREFIX_CHARACTERS,
    MIN_WEIGHT,
)
from arag_search.query.operators import OPERATORS, PREFER, OperatorWord
from arag_search.query.printing import (
    field_text,
    keyword_text,
    operator_text,
    phrase_text,
    range_text,
    weight_text,
    with_escaped_slashes,
    word_text,
)
from arag_search.query.problems import NodeError, ProblemKind
from arag_search.query.regexes import check_regex
from arag_search.system.value_class import value

TextField = Literal["title", "content"] | None

EXACT_MARK = "="
"""At the beginning of a phrase: its words are searched as they are written."""
_BLANK_AT_END = re.compile(r"(?<!\\)\s$")
# A product such as 0.1 * 0.1 is not outside by rounding.
_LEAST_WEIGHT, _MOST_WEIGHT = MIN_WEIGHT * (1 - 1e-9), MAX_WEIGHT * (1 + 1e-9)


class _Printed:
    """A node, whose text is canonical."""

    __slots__ = ()

    def __str__(self) -> str:
        return render(cast("Node | Modifier", self))


@value
class _Leaf(_Printed):
    """A leaf, which knows where in the query its clause starts; equal leaves may stand anywhere."""

    start: int = dataclasses.field(default=0, compare=False, repr=False, kw_only=True)


@value
class Term(_Leaf):
    """A word as typed. If the analyser splits it, it is the phrase of its tokens.

    Example: ``vivaldi``, ``title:griselda^2``
    """

    text: str
    field: TextField = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.weight != 1 or not self.text.isascii() or not self.text[:1].isalnum():
            _check_text(self)


@value
class Phrase(_Leaf):
    """Quoted text: its tokens in order, adjacent, or loosened by ``slop`` positions (0 to 20).

    A text that begins with EXACT_MARK is searched as it is written.

    Example: ``"four seasons"``, ``"vivaldi seasons"~3``
    """

    text: str
    slop: int = 0
    field: TextField = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.weight != 1 or not self.text.isascii() or not self.text[:1].isalnum():
            _check_text(self)
        if not self.slop:
            return
        if not 0 <= self.slop <= MAX_SLOP:
            raise NodeError(ProblemKind.SLOP, allowed=f"0 to {MAX_SLOP}", slop=self.slop)
        if len(spellings_of(self.text)[0]) < 2:
            raise NodeError(ProblemKind.SLOP_OF_ONE_WORD, do="Leave it out.")


@value
class Prefix(_Leaf):
    """The beginning of a token: at least 3 characters that the analyser keeps as one token.

    Example: ``librett*``
    """

    text: str
    field: TextField = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        _check_text(self)
        if not is_prefix(self.text):
            raise NodeError(
                ProblemKind.PREFIX,
                allowed=f"at least {MIN_PREFIX_CHARACTERS} characters (of Korean 2) of one word",
                do="Write the whole word, or \\* for the character.",
                text=self.text,
            )


@value
class Fuzzy(_Leaf):
    """A token in which up to ``edits`` letters, 1 or 2, are added, left out or replaced, or two
    neighbours exchanged. It has at least 3 characters for one edit, 5 for two.

    Example: ``vivladi~1``
    """

    text: str
    edits: int = 1
    field: TextField = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        _check_text(self)
        if self.edits not in MIN_FUZZY_CHARACTERS or not is_fuzzy(self.text, self.edits):
            raise NodeError(
                ProblemKind.FUZZY, allowed=FUZZY_WORDS, text=self.text, edits=self.edits
            )


@value
class Regex(_Leaf):
    """The condition that the stored text of a passage or sentence matches a regular expression.

    ``pattern`` is in the syntax of the library ``regex``; a slash in it has a backslash. Engines
    search no patterns: what they match is looked up first (see ``search.finding.resolve``).

    Example: ``title:/^The /i``
    """

    pattern: str
    ignore_case: bool = False
    field: TextField = None

    def __post_init__(self) -> None:
        pattern = with_escaped_slashes(checked_text(self.pattern))
        _set(self, "pattern", pattern)
        if pattern[:1].isspace() or _BLANK_AT_END.search(pattern):
            raise NodeError(ProblemKind.PATTERN_WITH_BLANK, do="Write \\s.")
        try:
            check_regex(pattern, self.ignore_case)
        except ValueError as error:
            raise NodeError(
                ProblemKind.PATTERN,
                do="Write a regular expression of Python, a phrase for the text itself, or \\/ for "
                "a slash at the start.",
                pattern=pattern,
                reason=str(error),
            ) from None


@value
class KeywordEquals(_Leaf):
    """The condition that a keyword field holds exactly this value (case-sensitive).

    Example: ``lang:en``
    """

    field: str
    value: str

    def __post_init__(self) -> None:
        _set(self, "value", checked_text(self.value))
        _check_field_name(self.field)
        if not self.value:
            do = "Write one, or leave it out."
            raise NodeError(ProblemKind.EMPTY_VALUE, do=do, name=self.field)


@value
class Range(_Leaf):
    """The condition that a field of an ordered type, ``kind``, is between bounds, which are values
    as typed; None is open.

    A single value, such as a year of dates, is a range from it to itself. ``interval`` has the
    least and the greatest double or long that the range holds, in this ``column`` of the field.

    Example: ``year:[1670 TO 1680]``, ``published:>=2001-05``
    """

    field: str
    kind: MetadataType
    lower: str | None
    upper: str | None
    include_lower: bool = True
    include_upper: bool = True
    interval: tuple[float, float] = dataclasses.field(init=False, compare=False, repr=False)
    column: str = dataclasses.field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_field_name(self.field)
        kind = FIELD_TYPES[self.kind]
        if not kind.is_ordered:
            raise kind.no_range(self.field)
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if bound is None:
                _set(self, f"include_{name}", True)  # so that equal ranges compare equal
            elif problem := kind.problem(bound, self.field):
                raise problem
            else:
                _set(self, name, kind.canonical(bound))
        bounds = (self.lower, self.upper, self.include_lower, self.include_upper)
        least, greatest = kind.interval(*bounds)
        if least > greatest:
            raise NodeError(ProblemKind.EMPTY_RANGE, do="Write the lower bound first.")
        _set(self, "interval", (least, greatest))
        _set(self, "column", kind.column(self.field, self.lower, self.upper))


@value
class Modifier(_Printed):
    """The effect of a child within an And.

    NOT: it excludes everything that it matches.
    PREFER: it adds its score if it matches.
    DEMOTE: if it matches, the score of the And is multiplied by ``factor``, from 0 to 1.

    Example: ``DEMOTE^0.2 opera``
    """

    operator: OperatorWord
    child: Node
    factor: float = DEFAULT_FACTOR

    def __post_init__(self) -> None:
        child, is_modifier = self.child, isinstance(self.child, Modifier)
        if self.operator is PREFER:
            if is_modifier or not scores(child):
                raise NodeError(ProblemKind.PREFER_WITHOUT_SCORE)
        elif is_modifier or _has_scoring(child) or unweighted(child) is not child:
            raise NodeError(ProblemKind.SCORING_IN_CONDITION, within=self.operator.word)
        if not 0 < self.factor < 1:
            allowed = "more than 0, less than 1"
            raise NodeError(ProblemKind.FACTOR, allowed=allowed, factor=self.factor)


@value
class And(_Printed):
    """The condition that all positive children match and no NOT does. At least one is positive.

    The score is the sum over the positive children and the PREFERs that match. It is multiplied by
    the factors of the DEMOTEs that match.

    Example: ``(vivaldi AND venice AND NOT opera)``
    """

    children: tuple[Node | Modifier, ...]
    weight: float = 1.0

    def __post_init__(self) -> None:
        _check_compound(self, And)
        if Modifier not in map(type, self.children):
            return
        places = list(map(_place, self.children))
        if 0 not in places:
            raise ArgumentError("A group of nothing but NOTs.", do="Add what is to be found.")
        if any(places) and places != sorted(places):
            raise ArgumentError(
                "A NOT, PREFER or DEMOTE out of order.",
                allowed="positive children, then NOTs, PREFERs and DEMOTEs",
            )


@value
class Or(_Printed):
    """The condition that at least one child matches.

    Example: ``(libretto OR librettist)``
    """

    children: tuple[Node, ...]
    weight: float = 1.0

    def __post_init__(self) -> None:
        _check_compound(self, Or)


TextLeaf = Term | Phrase | Prefix | Fuzzy
MetadataLeaf = KeywordEquals | Range
Leaf = TextLeaf | MetadataLeaf | Regex
Node = Leaf | And | Or
Compound = And | Or
_COMPOUNDS = (And, Or)  # isinstance is faster than of a Union


def all_of(*children: Node | Modifier) -> Node:
    """Return the canonical And of the children: flattened, modifiers last; a single child as it
    is."""
    flat = _flat(children, And)
    if Modifier in map(type, flat):
        flat.sort(key=_place)
    elif len(flat) == 1:
        return cast("Node", flat[0])
    return And(tuple(flat))


def any_of(*children: Node) -> Node:
    """Return the canonical Or of the children: flattened; a single child as it is."""
    flat = cast("list[Node]", _flat(children, Or))
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def _flat(
    children: tuple[Node | Modifier, ...], kind: type[And] | type[Or]
) -> list[Node | Modifier]:
    if kind not in map(type, children):  # most
        return list(children)
    flat: list[Node | Modifier] = []
    for child in children:
        if isinstance(child, kind) and child.weight == 1:
            flat += child.children
        else:
            flat.append(child)
    return flat


def weighted(node: Node, weight: float) -> Node:
    """Return the node with its weight multiplied. Raises ArgumentError for metadata leaves and
    patterns."""
    if weight == 1:
        return node
    if isinstance(node, MetadataLeaf | Regex):
        raise NodeError(ProblemKind.WEIGHT_OF_CONDITION, do="Leave the weight out.")
    return dataclasses.replace(node, weight=node.weight * weight)


def unweighted(node: Node) -> Node:
    """Return the node without its own weight, which has no effect if it only has to match."""
    if isinstance(node, MetadataLeaf | Regex) or node.weight == 1:
        return node
    return dataclasses.replace(node, weight=1.0)


def leaves(node: Node | Modifier) -> list[Leaf]:
    """Return all leaves below a node, including those under modifiers, left to right."""
    if isinstance(node, Modifier):
        return leaves(node.child)
    if not isinstance(node, Compound):
        return [node]
    all_leaves: list[Leaf] = []
    for child in node.children:
        all_leaves += leaves(child) if isinstance(child, Compound | Modifier) else (child,)
    return all_leaves


def placed(node: Node, start: int) -> Node:
    """Return the node of a clause, whose leaves now know that it starts there."""
    for leaf in leaves(node) if isinstance(node, _COMPOUNDS) else (node,):
        _set(leaf, "start", start)
    return node


def scores(node: Node | Modifier) -> bool:
    """Return whether a match can have a score: whether a text leaf is not under NOT or DEMOTE."""
    if isinstance(node, TextLeaf):
        return True
    if isinstance(node, Compound):
        return any(map(scores, node.children))
    return isinstance(node, Modifier) and node.operator is PREFER


def condition_of(node: Node) -> Node:
    """Return what a node matches, without PREFERs, DEMOTEs and the weights of groups."""
    if isinstance(node, Or):
        return any_of(*map(condition_of, node.children))
    if not isinstance(node, And):
        return node
    kept = (c for c in node.children if not (isinstance(c, Modifier) and c.operator.needs_ranking))
    return all_of(*(c if isinstance(c, Modifier) else condition_of(c) for c in kept))


def spelled_words(leaf: TextLeaf) -> int:
    """Return how many words an engine looks up for a leaf in each field, over all spellings.

    It is 0 for a single word of one spelling.
    """
    spelled = chain(*spellings_of(leaf.text))
    words = sum(len(units(word)) or 1 for word in spelled)
    return words if words > 1 else 0


# Printing


def render(node: Node | Modifier, operators: bool = True) -> str:
    """Return the canonical text of a node, fully parenthesised.

    Without ``operators`` the alternatives are printed with a space between them, as they are typed
    when operators are off.
    """
    match node:
        case Term():
            return word_text(node.text, node.field) + weight_text(node.weight)
        case Phrase():
            return phrase_text(node.text, node.field, node.slop) + weight_text(node.weight)
        case And():
            inside = render(node.children[0])
            for child in node.children[1:]:
                is_beside = isinstance(child, Modifier) and child.operator.needs_ranking
                inside += f"{' ' if is_beside else ' AND '}{render(child)}"
            return f"({inside}){weight_text(node.weight)}"
        case Or():
            between = " OR " if operators else " "
            inside = between.join([render(child, operators) for child in node.children])
            return f"({inside}){weight_text(node.weight)}"
        case Modifier():
            return f"{operator_text(node.operator, node.factor)} {render(node.child)}"
        case Prefix():
            return f"{word_text(node.text, node.field)}*{weight_text(node.weight)}"
        case Fuzzy():
            word = word_text(node.text, node.field)
            return f"{word}~{node.edits}{weight_text(node.weight)}"
        case Regex():
            return f"{field_text(node.field)}/{node.pattern}/{'i' if node.ignore_case else ''}"
        case KeywordEquals():
            return f"{node.field}:{keyword_text(node.value)}"
        case Range():
            bounds = (node.lower, node.upper, node.include_lower, node.include_upper)
            return f"{node.field}:{range_text(*bounds)}"
        case _:
            assert_never(node)


# Checks of constructors


def _set(node: object, name: str, value: object) -> None:
    object.__setattr__(node, name, value)


def _check_text(leaf: TextLeaf) -> None:
    """Check the weight of a leaf, and that its text has words; store the text in NFC."""
    if leaf.weight != 1:
        _check_weights([leaf.weight])
    _set(leaf, "text", checked_text(leaf.text))
    if not has_token(leaf.text):
        raise ArgumentError(f'"{leaf.text}" holds nothing to search.', do="Use letters or digits.")


def _check_weights(weights: list[float]) -> None:
    for weight in (min(weights), max(weights)) if weights else ():
        if not _LEAST_WEIGHT <= weight <= _MOST_WEIGHT:
            allowed = f"{MIN_WEIGHT:g} to {MAX_WEIGHT:g}"
            raise NodeError(ProblemKind.WEIGHT, allowed=allowed, weight=weight)


def _weights(node: Node | Modifier) -> list[float]:
    """Return the product of the weights from a node to each text leaf."""
    if isinstance(node, TextLeaf):
        return [node.weight]
    if isinstance(node, Compound):
        return [node.weight * below for child in node.children for below in _weights(child)]
    return _weights(node.child) if isinstance(node, Modifier) else []


def _place(node: Node | Modifier) -> int:
    return OPERATORS.index(node.operator) + 1 if isinstance(node, Modifier) else 0


def _has_scoring(node: Node | Modifier) -> bool:
    if isinstance(node, TextLeaf):
        return False
    if isinstance(node, Compound):
        return any(map(_has_scoring, node.children))
    return isinstance(node, Modifier) and node.operator.needs_ranking


def _check_compound(node: And | Or, kind: type[And] | type[Or]) -> None:
    """Check the children, and the products of weights if the node has a weight. The products below
    it were checked before. O(children)."""
    if len(node.children) < 2:
        raise ArgumentError(f"An {kind.__name__} of {len(node.children)}.", allowed="2 or more")
    kinds = set(map(type, node.children))
    if kind is Or and Modifier in kinds:
        name = next(c.operator.word for c in node.children if isinstance(c, Modifier))
        raise ArgumentError(f"A {name} as an alternative of Or.", do="Put it into an And.")
    if kind in kinds and any(isinstance(c, kind) and c.weight == 1 for c in node.children):
        raise ArgumentError(f"An {kind.__name__} in an {kind.__name__}.", do="Join them.")
    if node.weight == 1:
        return
    _check_weights([node.weight])  # else its text could not be parsed
    _check_weights(_weights(node))
    if not scores(node):
        raise NodeError(ProblemKind.WEIGHT_OF_METADATA, do="Leave the weight out.")


def _check_field_name(name: str) -> None:
    if not is_field_name(name):
        raise ArgumentError(f'The field name "{name}".', allowed="a letter, then letters, digits")
