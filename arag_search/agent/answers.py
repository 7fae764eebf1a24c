"""Read a model's final reply: short answer, explanation, cited ids, and whether these are right.

The prompts ask for three lines, ``Answer:``, ``Explanation:``, ``Sources:``. Models decorate them,
leave some out or change their order; the original reply is kept beside the parsed parts.

Citations have one grammar in answers, explanations and lists of sources. Ids are in brackets, one
or several, with any separator; in a list of sources they may also be without brackets. Only ids of
passages are citations; other text in brackets is ordinary text. A word that looks like an id and is
where an id would be, but that no passage has, is an invented id.

Sources may have scores (AgenticRAG, section 4): how much each helps. The paper specifies neither
scale nor form. Our scores are from 0 to 1, in the form of ``answer_form_scored.md``. Percentages
and scores out of ten are read as fractions.
"""

from __future__ import annotations

import re
import string
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from arag_search.corpus import nfc
from arag_search.query.typography import PLAIN
from arag_search.tools.references import FORM, References

MAX_CANDIDATES = 200
"""The maximum number of words of a reply that are looked up; replies name fewer passages."""

_BRACKETS = str.maketrans("【】［］\0", "[][] ")
_GROUP = re.compile(r"\[([^\[\]\n]*)\]")
_SEPARATORS = re.compile(r"[,;|\n]")
_JOINING = frozenset({"and", "or", "&", "+", "-", "–", "—"})
_BULLET = re.compile(r"^[ \t]*(?:[-*•–]|\d+[.)])[ \t]+(?=\S)", re.MULTILINE)
_ASIDE = re.compile(r"(?<=[^\s,;|])[ \t]*\([^()\n]*\)")
_ID = re.compile(r"(?=.*\d)\w[\w./:#@+-]*")
_NUMBERED_PART = re.compile(r"(?=.*[^\W\d])\w[\w./:#@+-]*\.\d+")
_AROUND = "\"'`*•()<>.:!?_“”‘’«»"
_AFTER_CITATION = re.compile(r"\s*(?:$|[\[.,;:!?)\]*_\"”]|(?:and|or|&)\b)", re.IGNORECASE)


class Mention(NamedTuple):
    """An id that a text names as a source; ``is_known`` if a passage has it."""

    start: int
    id: str
    is_known: bool


class _Group(NamedTuple):
    """Brackets in a text, and the ids in them. Brackets without an id are ordinary text."""

    start: int
    end: int
    mentions: tuple[Mention, ...]


class _Token(NamedTuple):
    start: int
    text: str
    is_known: bool

    @property
    def is_like_id(self) -> bool:
        return self.is_known or _ID.fullmatch(self.text) is not None


class CitedText:
    """A text in which the ids of ``known`` passages are recognised.

    In a list of sources (``is_list``), any single word in brackets is taken as an id, and ids
    need no brackets. Elsewhere, an id that looks like an ordinary word, such as a number, counts
    only where a citation can be: before a punctuation mark, another citation, "and", or the end.
    """

    def __init__(self, text: str, known: Collection[str], *, is_list: bool = False) -> None:
        self._original = text
        self._text = text.translate(_BRACKETS)
        if is_list:
            self._text = _BULLET.sub(_blank, self._text)
        self._is_list = is_list
        self._ids = frozenset(known)
        self._plain_known = any(id.isalnum() for id in known)
        self._numeric_known = any(not _has_letter(id) for id in known)
        self._known = dict[int, str]()
        self._masked = self._mask(known)
        self._groups = [self._group(brackets) for brackets in _GROUP.finditer(self._masked)]

    def mentions(self) -> list[Mention]:
        """Return the ids that the text names, in the order of the text."""
        mentions = [mention for group in self._groups for mention in group.mentions]
        if self._is_list:
            mentions += self._ids_outside_brackets()
        return sorted(set(mentions))

    def without_citations(self) -> str:
        """Return the text without the brackets around ids."""
        kept, end = "", 0
        for group in self._groups:
            if group.mentions:
                kept += self._original[end : group.start]
                end = group.end
        return kept + self._original[end:]

    def candidates(self) -> Iterator[str]:
        """Yield words that may be the id of a passage that is not known yet."""
        for brackets in _GROUP.finditer(self._masked):
            yield self._text[brackets.start(1) : brackets.end(1)].strip()
            for piece in self._pieces(brackets.start(1), brackets.end(1)):
                yield from (token.text for token in piece if not token.is_known)
        if self._is_list:
            for start, end in _split(self._masked, 0, len(self._masked)):
                yield self._text[start:end].strip().strip(_AROUND)
                yield from (token.text for token in self._tokens(start, end) if not token.is_known)

    def _mask(self, known: Collection[str]) -> str:
        """Return the text with the known ids blanked out, longest first, and note their offsets."""
        masked = self._text
        there = (id for id in known if id in masked and any(map(str.isalnum, id)))
        for id in sorted(there, key=len, reverse=True):

            def blot(match: re.Match[str], id: str = id) -> str:
                self._known[match.start()] = id
                return "\0" * len(id)

            masked = re.sub(rf"(?<![\w./-]){re.escape(id)}(?![\w/-]|\.\w)", blot, masked)
        return masked

    def _pieces(self, start: int, end: int) -> list[list[_Token]]:
        pieces = (self._tokens(*piece) for piece in _split(self._masked, start, end))
        return [piece for piece in pieces if piece]

    def _tokens(self, start: int, end: int) -> list[_Token]:
        tokens: list[_Token] = []
        for word in re.finditer(r"\S+", self._masked[start:end]):
            tokens += self._tokens_of(start + word.start(), word[0])
        return [token for token in tokens if token.text.lower() not in _JOINING]

    def _tokens_of(self, start: int, word: str) -> Iterator[_Token]:
        """Yield the known ids in a word, or else the word itself; slashes may separate ids."""
        places = [at for at in range(start, start + len(word)) if at in self._known]
        if places:
            yield from (_Token(at, self._known[at], True) for at in places)
            return
        parts = word.strip(_AROUND).split("/")
        if len(parts) > 1 and self._ids.issuperset(parts):
            yield from (_Token(start + at, part, True) for at, part in enumerate(parts))
        elif bare := word.strip(_AROUND):
            yield _Token(start, bare, False)

    def _group(self, brackets: re.Match[str]) -> _Group:
        pieces = self._pieces(brackets.start(1), brackets.end(1))
        has_ids = [all(token.is_like_id for token in piece) for piece in pieces]
        is_word = self._is_list and len(pieces) == len(pieces[0]) == 1 if pieces else False
        named = [
            Mention(token.start, token.text, token.is_known)
            for piece, good in zip(pieces, has_ids, strict=True)
            for token in piece
            if (good and (token.is_known or all(has_ids))) or is_word
        ]
        if not self._is_list:
            can_cite = _AFTER_CITATION.match(self._masked, brackets.end()) is not None
            named = [mention for mention in named if self._is_cited_in_text(mention, can_cite)]
        named = [mention for mention in named if any(map(str.isalnum, mention.id))]
        return _Group(brackets.start(), brackets.end(), tuple(named))

    def _is_cited_in_text(self, mention: Mention, can_cite: bool) -> bool:
        id = mention.id
        if mention.is_known:
            return can_cite or not id.isalnum()
        if id.isalnum():
            return can_cite and self._plain_known
        return _has_letter(id) or (can_cite and self._numeric_known)

    def _ids_outside_brackets(self) -> Iterator[Mention]:
        rest = list(self._masked)
        for group in self._groups:
            rest[group.start : group.end] = " " * (group.end - group.start)
        outside = _ASIDE.sub(_blank, "".join(rest))
        bracketed = {at for group in self._groups for at in range(group.start, group.end)}
        for at, id in self._known.items():
            if at not in bracketed and not id.isalnum():
                yield Mention(at, id, True)
        begins = [group.start for group in self._groups]
        for start, end in _split(outside, 0, len(outside)):
            at = bisect_left(begins, start)
            is_beside = at < len(begins) and begins[at] < end
            yield from self._ids_in_piece(outside[start:end], start, is_beside)

    def _ids_in_piece(self, piece: str, start: int, is_beside: bool) -> Iterator[Mention]:
        """Yield the ids in a piece of a list: all of its words if all look like ids, otherwise
        the first word if a colon or a dash sets it apart. ``is_beside`` is for words next to ids in
        brackets."""
        words = [
            (start + match.start(), match[0])
            for match in re.finditer(r"\S+", piece)
            if match[0].lower() not in _JOINING
        ]
        tokens = [token for at, word in words for token in self._tokens_of(at, word)]
        if not is_beside and all(token.is_like_id for token in tokens):
            yield from (Mention(*token) for token in tokens)
            return
        first_word = words[0][1] if words else ""
        dashes = re.match(r"\s*\S+\s+[-–—]\s", piece) is not None
        for token in tokens:
            is_named = token == tokens[0] and (first_word.endswith(":") or dashes)
            if token.is_known:
                if is_named and not is_beside:
                    yield Mention(*token)
            elif (token == tokens[0] or is_beside) and _NUMBERED_PART.fullmatch(token.text):
                yield Mention(*token)


def candidates(texts: Iterable[CitedText], known: Collection[str]) -> list[str]:
    """Return the words of these texts that could be unknown ids, at most MAX_CANDIDATES."""
    words = dict.fromkeys(word for text in texts for word in text.candidates())
    unknown = (word for word in words if word not in known and any(map(str.isalnum, word)))
    return list(islice(unknown, MAX_CANDIDATES))


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for separator in _SEPARATORS.finditer(text, start, end):
        yield start, separator.start()
        start = separator.end()
    yield start, end


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _has_letter(id: str) -> bool:
    return any(map(str.isalpha, id))


_SCORE = re.compile(
    rf"(?P<id>{FORM.pattern})(?!\d)(?P<mark>[\]】)]*)(?P<between>[\s:=(\-–—]*?)"
    r"(?P<score>\d{1,3}(?:[.,]\d{1,6})?)\s*(?P<scale>%|/\s*100?(?!\d))?(?!\w|\.\d)\)?"
)


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document that an answer cites: its reference, its id, and how much it helps, from 0 to 1,
    as the model says."""

    reference: str
    doc_id: str
    score: float


def split_scores(sources: str) -> tuple[str, dict[str, float]]:
    """Return a list of sources without its scores, and the scores by reference. If a reference has
    several scores, the first counts."""
    scores: dict[str, float] = {}

    def note(match: re.Match[str]) -> str:
        scores.setdefault(match["id"], _fraction(match["score"], match["scale"]))
        return f"{match['id']}{match['mark']}"

    return _SCORE.sub(note, sources), scores


def cited_documents(
    cited: Sequence[str], scores: Mapping[str, float], references: References
) -> tuple[CitedDocument, ...]:
    """Return the documents of references that an answer cites, best first; equal scores stay in
    their order. A reference without a score gets 1 / position. A document is listed once, at its
    best place.
    """
    ranked: list[tuple[float, str, str]] = []
    for position, id in enumerate(cited, 1):
        reference = references.get(id)
        if reference is not None:
            ranked.append((scores.get(id, 1 / position), id, reference.doc_id))
    best: dict[str, CitedDocument] = {}
    for score, id, doc_id in sorted(ranked, key=lambda ranking: -ranking[0]):
        best.setdefault(doc_id, CitedDocument(id, doc_id, score))
    return tuple(best.values())


def _fraction(score: str, scale: str | None) -> float:
    number = float(score.replace(",", "."))
    if scale == "%" or (scale and scale.rstrip().endswith("100")) or (not scale and number > 10):
        number /= 100
    elif scale or number > 1:
        number /= 10
    return min(max(number, 0.0), 1.0)


Citation = Literal["cited", "uncited", "wrong"]

NOT_FOUND = "not found in the corpus"
"""The reply that the prompts ask for if the corpus does not hold the answer."""


class _Marks(dict[int, str]):
    """Nothing for ASCII punctuation and that of other scripts, and other characters as they are."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_mark = character in string.punctuation or unicodedata.category(character)[0] == "P"
        kept = self[code] = "" if is_mark else character
        return kept


_NO_MARKS = _Marks()
_SIGNS = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFFEF)} | PLAIN
"""Signs and letters of full and half width, and typographic signs, as plain ones."""
_IMPLIED = re.compile(r"[\s*_`]*\(implied\)\W*\Z", re.IGNORECASE)
"""The mark that the prompts ask for after an answer that passages imply."""
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_DECORATION = r"[ \t>#*_`-]*"
_LABEL = re.compile(
    rf"^{_DECORATION}(?:(?:the |my )?(?:final |short )?(?P<answer>answer)"
    r"|(?P<explanation>explanation|reasoning|rationale)"
    r"|(?P<sources>sources?|citations?|cited ids?|references))"
    r"[ \t*_`]*[:：][ \t*_`]*",
    re.IGNORECASE | re.MULTILINE,
)

_OPEN_ENDS = (",", ":", ";", "(", "[", " -", "–", "—")
_MOST_LOWER_WORDS, _MOST_NAME_WORDS = 2, 5  # of a last line without a mark, by its last word

Exists = Callable[[Sequence[str]], Collection[str]]
"""A function that returns which of the given ids are ids of passages in the index."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of a final reply.

    ``raw`` is the whole reply. ``cited_ids`` are in the order in which the reply names them.
    ``wrong_ids`` were named although no tool had shown them: ids of existing passages, and
    ``invented_ids``, which no passage has and which do not count as citations. ``scores`` are those
    of the sources that have one.
    """

    short: str
    explanation: str
    cited_ids: tuple[str, ...]
    wrong_ids: tuple[str, ...]
    raw: str
    invented_ids: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def citation(self) -> Citation:
        """Whether the answer has citations, and cites only passages that were shown."""
        if self.wrong_ids:
            return "wrong"
        return "cited" if self.cited_ids else "uncited"


def parse_answer(
    text: str,
    shown_ids: Collection[str] = (),
    exists: Exists | None = None,
    *,
    scored: bool = False,
) -> Answer:
    """Read a final reply. ``shown_ids`` are the chunks that tools have shown; ``exists`` says which
    other ids exist. Without ``exists``, every id that was not shown counts as existing.

    Without an ``Answer:`` line the first paragraph is the answer; without an ``Explanation:`` line
    the text before the first label, or after the first paragraph, is the explanation. Ids are read
    in all three parts by one grammar (``CitedText``). With ``scored``, a number after a source is
    read as its score.
    """
    parts = _parts(text)
    scores: dict[str, float] = {}
    if scored:
        parts["sources"], scores = split_scores(parts["sources"])
    shown = frozenset(shown_ids)
    known = shown
    if exists is not None and (others := candidates(_cited_texts(parts, known).values(), known)):
        known |= frozenset(exists(others))
    texts = _cited_texts(parts, known)
    mentions = [mention for cited in texts.values() for mention in cited.mentions()]
    named = tuple(dict.fromkeys(mention.id for mention in mentions))
    invented = () if exists is None else tuple(id for id in named if id not in known)
    return Answer(
        short=_short(texts["answer"].without_citations()),
        explanation=parts["explanation"],
        cited_ids=tuple(id for id in named if exists is None or id in known),
        wrong_ids=tuple(id for id in named if id not in shown),
        raw=text,
        invented_ids=invented,
        scores=scores,
    )


def _cited_texts(parts: dict[str, str], known: Collection[str]) -> dict[str, CitedText]:
    return {
        name: CitedText(parts[name], known, is_list=name == "sources")
        for name in ("sources", "answer", "explanation")
    }


def has_answer_line(text: str) -> bool:
    """Return whether some line begins with ``Answer:``."""
    return any(label["answer"] for label in _LABEL.finditer(text))


def is_half_sentence(text: str) -> bool:
    """Return whether a reply seems to stop within a sentence: its last line has no mark that ends
    one, and is no name, no title and no list of sources."""
    label = next(reversed(list(_LABEL.finditer(text))), None)
    last = text[0 if label is None else label.end() :].rstrip().rpartition("\n")[2]
    if not last or last.endswith(_OPEN_ENDS):
        return label is not None or bool(last)
    words = last.split()
    most = _MOST_LOWER_WORDS if words[-1].islower() else _MOST_NAME_WORDS
    is_list = label is not None and bool(label["sources"])
    return len(words) > most and last[-1].isalnum() and not is_list


def _parts(text: str) -> dict[str, str]:
    """Return the text by label; of a duplicate label, the last text."""
    labels = list(_LABEL.finditer(text))
    parts = {"answer": "", "explanation": "", "sources": ""}
    for at, label in enumerate(labels):
        end = labels[at + 1].start() if at + 1 < len(labels) else len(text)
        parts[label.lastgroup or ""] = text[label.end() : end].strip()
    before = (text[: labels[0].start()] if labels else text).strip()
    if not any(label["answer"] for label in labels):
        parts["answer"], _, before = before.partition("\n\n")
    parts["explanation"] = parts["explanation"] or before.strip()
    return parts


def _short(text: str) -> str:
    return " ".join(_IMPLIED.sub("", text.strip().strip("*_`")).split())


def normalise(text: str) -> str:
    """Return a text as answers are compared (SQuAD; Rajpurkar et al., 2016). The result is in lower
    case, without punctuation and the words a, an, the, and with single spaces. Text is brought to
    NFC first, so that an accent counts the same however it is written, and to plain signs: of ASCII
    texts, all is as in SQuAD's script.
    """
    return " ".join(_ARTICLES.sub(" ", _bare(text)).split())


def distinct(text: str) -> str:
    """Return ``normalise(text)``, or what tells a text apart of which that leaves nothing: its
    articles (a gold answer "A"), else its marks ("+")."""
    return normalise(text) or " ".join((_bare(text) or _plain(text)).split())


def _bare(text: str) -> str:
    return _plain(text).lower().translate(_NO_MARKS)


def _plain(text: str) -> str:
    return text if text.isascii() else nfc(text.translate(_SIGNS))


_CONTRACTED = "couldnt|cant|dont|doesnt|didnt|isnt|wasnt|arent|werent|hasnt|havent"
_NOT = (
    "found|find|determined?|answer(?:ed)?|know|known|say|tell|have|available|mention(?:ed)?"
    "|stated?|given?|provided?|specif(?:y|ied)|contain(?:ed)?"
    "|present|appear|in (?:the )?(?:corpus|passages|documents)"
)
_REFUSAL = re.compile(
    r"(?:(?:the|this|that|an?|i|we|it|there|they|sorry|unfortunately|answer|information|question"
    r"|corpus|passages?|documents?|sources?|text|is|was|were|are|could|can|does|do|did|has|have) )*"
    rf"(?:(?:(?:not|cannot|{_CONTRACTED}) (?:be )?(?:{_NOT})\b"
    r"|unable to\b|insufficient\b|not enough\b"
    r"|(?:no|isnt any|is not any) (?:answer|information|evidence|relevant|mention)\b)"
    r"|(?:unknown|none|na|unanswerable)$)"
)
_CONTRAST = re.compile(r"\b(?<!nothing )(?<!anything )(?:but|however)\b")


def is_refusal(answer: str) -> bool:
    """Return whether a short answer says that there is no answer.

    An answer is a refusal if it has no word, or if it begins with words such as "not found in the
    corpus", "cannot be determined" or "no information" and does not give an answer later, as "not
    mentioned in the corpus, but Paris" does.
    """
    rest = normalise(answer) or _bare(answer).strip()
    while rest:
        refusal = _REFUSAL.match(rest)
        if refusal is None:
            return False
        contrast = _CONTRAST.search(rest, refusal.end())
        rest = "" if contrast is None else rest[contrast.end() :].strip()
    return True
