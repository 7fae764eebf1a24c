"""Read a model's final reply: short answer, explanation, cited ids, and whether these are right.

The prompts ask for three lines, ``Answer:``, ``Explanation:``, ``Sources:``. Models decorate them,
leave some out or change their order. They also write headings, tags, JSON or a box instead, with
words of other languages too (``reply_words.txt``). ``Answer.form`` names the rules that read them;
the original reply is kept beside the parsed parts.

Citations have one grammar in answers, explanations and lists of sources. Ids are in brackets, one
or several, with any separator; in a list of sources they may also be without brackets. Only ids of
passages are citations; other text in brackets is ordinary text. A word that looks like an id and is
where an id would be, but that no passage has, is an invented id.

Sources may have scores (AgenticRAG, section 4): how much each helps. The paper specifies neither
scale nor form. Our scores are from 0 to 1, in the form of ``answer_form_scored.md``. Percentages
and scores out of ten are read as fractions.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from arag_search.agent.wording import ROWS, is_refusal
from arag_search.endpoints.refusals import fields_of, items_of
from arag_search.tools.conversation import FORM, References

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

    In a list of sources (``is_list``), any single word in brackets is taken as an id, and ids need
    no brackets. Elsewhere, an id that looks like an ordinary word, such as a number, counts only
    where a citation can be. That is before a punctuation mark, another citation, "and", or the end.
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
        """Yield the ids in a piece of a list. If all of its words look like ids, yield all.
        Otherwise yield the first word, if a colon or a dash sets it apart. ``is_beside`` is for
        words next to ids in brackets."""
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


_IMPLIED = re.compile(r"(?<![\s*_`])[\s*_`]*+\(implied\)\W*\Z", re.IGNORECASE)
"""The mark that the prompts ask for after an answer that passages imply."""
_PARTS = (
    {
        re.sub(r"[\W_]", "", word).lower(): (part, "" if row is ROWS[0] else "language")
        for row in reversed(ROWS)  # a word that is English as well is English
        for part, words in zip(("answer", "explanation", "sources"), row[1:4], strict=True)
        for word in words
    }
    | dict.fromkeys(("<response>", "<box>"), ("answer", ""))
)
"""The part of a reply that a label, a tag or a key begins, and the rule that knows its language."""
_OWN = re.compile(
    r"(?:.* )?(?:evidence|confidence|certainty|quot(?:e|ation)s?|notes?|caveats?|basis|support"
    r"|passages?|justification|analysis|verification|context|details?)(?: (?:level|score))?",
    re.IGNORECASE,
)
"""Labels that models add behind the answer."""
_MARKS = r"[ \t>#*_`\[【+=~•·–—\u2190-\u2bff\ufe0f\U0001f000-\U0001faff-]*+"
_LABEL = re.compile(
    rf"(?:(?:^|(?<=[a-z|]>))(?P<marks>{_MARKS}(?:\(?\d{{1,2}}[.):]{_MARKS})?)"
    r"|(?<=[ \t])(?P<inline>\*\*|\[\[ ?## ?))"
    r"(?P<name>[^\W\d][^\n:：*_`#\[\]【】<>(){}|\"]{0,40}?)[ \t\xa0\u202f*_`#]*+"
    r"(?P<bracket>[\]】]{1,2}[ \t*_`]*+)?+"
    r"(?:(?P<colon>[:：])[ \t\xa0*_`]*+|$|(?(bracket)|(?!)))"
    r"|(?<![`\"'])<(?P<closing>/|\|end_of_)?(?:\|begin_of_)?(?P<tag>[a-z_]{3,20})\|?>",
    re.IGNORECASE | re.MULTILINE,
)
"""The beginning of a line that may be a label: with a colon, as a heading or in brackets. Also a
tag, and a label in bold or in brackets within a line."""
_RULER = re.compile(r"\n[ \t]*[-*_=]{3,}\s*\Z")
_BOX = re.compile(
    r"(?<![`'\"“\\])(?:(?:\\{0,2}(?<!\w)b|\x08)oxed|\\{1,2}fbox)\s{0,9}\{"
    r"(?P<text>(?:\\[{}]|[^{}]|\{(?:\\[{}]|[^{}]|\{[^{}]{0,500}+\}){0,500}+\}){1,500}+)\}"
    r"(?:[ \t]*(?:[$*_)]|\\[\])]|\[[^\[\]\n]*\]))*+[ \t]*(?:$|[.。!](?:\W|$))",
    re.MULTILINE,
)
"""A box of LaTeX, also where JSON has lost its backslash, that ends a line or a sentence."""
_LATEX_TEXT = re.compile(r"\\(?:text|math)\w*\s*\{([^{}]*)\}|\\([%$&#_])|\{(,)\}")
_NUMBER = re.compile(r"(?<!\S)[(\[]?(\d{1,2})[.)\]][ \t]+(?=([\[【]?\w\S*))")

_OPEN_ENDS = (",", ":", ";", "(", "[", " -", "–", "—")
_MOST_LOWER_WORDS, _MOST_NAME_WORDS = 2, 5  # of a last line without a mark, by its last word

Exists = Callable[[Sequence[str]], Collection[str]]
"""A function that returns which of the given ids are ids of passages in the index."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of a final reply.

    - ``raw``: the whole reply.
    - ``cited_ids``: in the order in which the reply names them.
    - ``wrong_ids``: named although no tool had shown them.
    - ``invented_ids``: the wrong ids that no passage has. They do not count as citations.
    - ``scores``: the scores of the sources that have one.
    - ``form``: the rules that read the answer, empty if there is no reply. First comes its place: a
      label, heading, inline label, brackets, tag, json, or paragraph. Then comes what else was
      read: a number, a language other than English, a box, an own label, numbered sources.
    """

    short: str
    explanation: str
    cited_ids: tuple[str, ...]
    wrong_ids: tuple[str, ...]
    raw: str
    invented_ids: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    form: str = ""

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

    If no label marks the answer, it is the answer of a JSON object, the paragraph with a box, or
    the first paragraph. If none marks the explanation, it is the text before the first label, or
    the other paragraphs. Ids are read in all three parts by one grammar (``CitedText``). With
    ``scored``, a number after a source is read as its score.
    """
    parts, rules = _parts(text)
    scores: dict[str, float] = {}
    sources = parts["sources"]
    parts["sources"] = _without_numbers(sources, shown_ids)
    if parts["sources"] != sources:
        rules.append("numbered sources")
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
    is_empty = not (parts["answer"] or parts["explanation"] or mentions)
    if rules == ["paragraph"] and is_empty and not is_refusal(sources):  # "Source: the Nile"
        parts |= _unlabelled(text) | {"sources": ""}
        texts = _cited_texts(parts, known)
    answer = _IMPLIED.sub("", texts["answer"].without_citations())
    if (box := _boxed(answer)) is not None:
        answer = box[1]
        rules.append("box")
    return Answer(
        short=_short(answer),
        explanation=parts["explanation"],
        cited_ids=tuple(id for id in named if exists is None or id in known),
        wrong_ids=tuple(id for id in named if id not in shown),
        raw=text,
        invented_ids=invented,
        scores=scores,
        form=", ".join(rules),
    )


def _cited_texts(parts: dict[str, str], known: Collection[str]) -> dict[str, CitedText]:
    return {
        name: CitedText(parts[name], known, is_list=name == "sources")
        for name in ("sources", "answer", "explanation")
    }


def has_answer_line(text: str) -> bool:
    """Return whether a reply says which part of it is the answer, by a label or another form."""
    parts, rules = _parts(text)
    return rules[:1] not in ([], ["paragraph"]) or _boxed(parts["answer"]) is not None


def is_half_sentence(text: str) -> bool:
    """Return whether a reply seems to stop within a sentence. Its last line then has no mark that
    ends one, and is no name, no title and no list of sources."""
    label = next(reversed(_labels(text)), None)
    last = text[0 if label is None else label.end :].rstrip().rpartition("\n")[2]
    if not last or last.endswith(_OPEN_ENDS):
        return bool(last) or (label is not None and label.part != "rest")
    words = last.split()
    most = _MOST_LOWER_WORDS if words[-1].islower() else _MOST_NAME_WORDS
    is_list = label is not None and label.part == "sources"
    return len(words) > most and last[-1].isalnum() and not is_list


class _Label(NamedTuple):
    start: int
    end: int
    part: str
    rules: tuple[str, ...] = ("tag",)
    marks: str = ""


def _labels(text: str) -> list[_Label]:
    """Return the labels of a reply. A heading needs marks; a tag begins a line, or is closed where
    no line is labelled the answer. Text behind a closing tag is the part "rest"."""
    labels = list[_Label]()
    matches = list(_LABEL.finditer(text))
    closed = {match["tag"].lower(): match.start() for match in matches if match["closing"]}
    opened, has_answer = "", False
    for match in matches:
        last = labels[-1] if labels else _Label(0, 0, "")
        tag, name = (match["tag"] or "").lower(), match["name"] or ""
        key = re.sub(r"[\W_]", "", tag or name.lower())
        part, language = _PARTS.get(f"<{tag}>") or _PARTS.get(key, ("", ""))
        if tag:
            line = text[max(last.end, text.rfind("\n", 0, match.start()) + 1) : match.start()]
            is_first = not line.strip(" \t*_>`-") and (part == "answer" or tag in closed)
            if match["closing"] and tag == opened:
                labels.append(_Label(*match.span(), "rest"))
            is_closed = not has_answer and closed.get(tag, 0) > match.start()
            if part and not match["closing"] and (is_first or is_closed):
                labels.append(_Label(*match.span(), part))
                opened = tag
            continue
        marks = match["marks"] or match["inline"] or ""
        is_marked = re.search(r"#|\*\*|__|\d|[\[【]", marks) is not None
        is_all = match.end() - match.start() >= len(text.strip())
        if not match["colon"] and (is_all or not is_marked or key.startswith(("the", "my"))):
            continue
        if not part and match["colon"] and last.part == "answer":
            answer = text[last.end : match.start()].strip()
            is_own = _OWN.fullmatch(name) or (is_marked and marks == last.marks)
            part = "own" if is_own and answer and answer[-1] not in ":," else ""
        if part:
            form = "inline label" if match["inline"] else "label" if match["colon"] else "heading"
            number = "number" if any(map(str.isdigit, marks)) else ""
            rules = "brackets" if match["bracket"] else form, number, language
            labels.append(_Label(*match.span(), part, tuple(filter(None, rules)), marks))
            has_answer = has_answer or part == "answer"
    return labels


def _parts(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the text by label, of a duplicate label the last text, and the rules that read it."""
    labels = _labels(text)
    parts: dict[str, str] = {"answer": "", "explanation": "", "sources": "", "rest": ""}
    own: list[str] = []
    before = (text[: labels[0].start] if labels else text).strip()
    for label, behind in zip(labels, [*labels[1:], None], strict=False):
        written = text[label.end : behind and behind.start]
        if label.part == "own":
            own.append(_RULER.sub("", text[label.start : label.end] + written).strip())
            continue
        parts[label.part] = _RULER.sub("", written).strip()
    before = f"{before}\n{parts['rest']}".strip()
    rules = [list(label.rules) for label in labels if label.part == "answer"]
    if not rules:
        if (read := _json_parts(text)) is not None:
            return read, ["json"]
        parts |= _unlabelled(before, parts["explanation"])
        return parts, ["paragraph"] if text.strip() else []
    if own:
        rules[-1].append("own label")
    explanation = parts["explanation"] or before
    parts["explanation"] = "\n".join(filter(None, (explanation, *own)))
    return parts, rules[-1]


def _unlabelled(text: str, explanation: str = "") -> dict[str, str]:
    """Return the paragraph with a box, or else the first one, as the answer, and the others."""
    text, box = text.strip(), _boxed(text.strip())
    begin = 0 if box is None else max(text.rfind("\n\n", 0, box[0]), 0)
    answer, _, behind = text[begin:].strip().partition("\n\n")
    others = f"{text[:begin]}\n\n{behind}".strip()
    return {"answer": answer, "explanation": explanation or others}


def _json_parts(text: str) -> dict[str, str] | None:
    """Return the parts of a JSON object with an answer that begins or ends a reply, perhaps fenced;
    None if there is none. The text outside is the explanation if it has none."""
    begin, end = text.find("{"), text.rfind("}") + 1
    lead, fence, info = text[: max(begin, 0)].rpartition("```")
    before = lead if fence and info.strip().lower() in ("", "json") else text[: max(begin, 0)]
    outside = [before.strip(" \t\n["), text[end:].strip(" \t\n]`")]
    if not 0 <= begin < end or all(outside) or before.rstrip(" \t[")[-1:] not in ("", "\n"):
        return None
    for written in (text[begin:end], re.sub(r",(?=\s*[}\]])", "", text[begin:end])):
        try:
            value = json.loads(written, strict=False, parse_int=str, parse_float=str)
            for fields in (fields_of(value), *map(fields_of, fields_of(value).values())):
                parts: dict[str, str] = {"explanation": "", "sources": ""}
                for key, content in fields.items():
                    part, _ = _PARTS.get(re.sub(r"[\W_]", "", key).lower(), ("", ""))
                    parts[part] = (", " if part == "answer" else "\n").join(_leaves(content))
                if "answer" in parts:
                    return parts | {"explanation": parts["explanation"] or "".join(outside)}
        except (ValueError, RecursionError):
            continue
    return None


def _leaves(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value; true and false are yes and no."""
    fields, items = fields_of(value), items_of(value)
    for item in [*fields.values(), *items]:
        yield from _leaves(item)
    if not isinstance(value, dict | list | None):
        yield ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _boxed(text: str) -> tuple[int, str] | None:
    """Return where the last box begins, and its text; None if there is none."""
    box = [None, *_BOX.finditer(text)][-1]
    if box is None:
        return None
    content = box["text"]
    for _ in range(2):  # a text in a text
        content = _LATEX_TEXT.sub(lambda match: "".join(filter(None, match.groups())), content)
    return box.start(), content.replace("~", " ").strip("$ \n")


def _without_numbers(sources: str, known: Collection[str]) -> str:
    """Return a list of sources with separators for the numbers 1, 2, ... of its entries. A number
    in square brackets is one only before an id."""
    number = 0

    def separator(match: re.Match[str]) -> str:
        nonlocal number
        entry = match[2].strip(_AROUND + "[],;")
        is_id = match[0][0] != "[" or entry in known or _NUMBERED_PART.fullmatch(entry)
        if int(match[1]) != number + 1 or not is_id:
            return match[0]
        number += 1
        return ";" + " " * (len(match[0]) - 1)

    return _NUMBER.sub(separator, sources)


def _short(text: str) -> str:
    return " ".join(_IMPLIED.sub("", text.strip().strip("*_`")).split())
