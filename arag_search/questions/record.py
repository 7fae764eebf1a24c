"""One record of a file of questions, in any published shape; its bytes, JSON and fields are read
strictly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import orjson

from arag_search.corpus import nfc
from arag_search.errors import QuestionsError
from arag_search.questions.question import GoldPassage, GoldSentence, Hop, Question, Triple

_Item = TypeVar("_Item")

ID_FIELDS = ("id", "_id", "question_id", "qid", "query_id")
"""The names of the id of a question or query in the files of various projects."""
_SHOWN_CHARACTERS = 60


def first_field(fields: Mapping[str, object], names: Sequence[str]) -> str | None:
    """Return the first of the names whose value is neither absent nor null, or None."""
    return next((name for name in names if fields.get(name) is not None), None)


def read_bytes(path: Path, what: str, allowed: str) -> bytes:
    """Return the bytes of a file without a byte order mark. Raises QuestionsError."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise QuestionsError(
            f"{what} ({error.strerror}).", where=str(path), allowed=allowed
        ) from error
    return raw.removeprefix(b"\xef\xbb\xbf")


def parsed(text: bytes, what: str, where: str, allowed: str) -> object:
    """Parse JSON. Raises QuestionsError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise QuestionsError(
            f"The {what} is not JSON ({error}).", where=where, allowed=allowed
        ) from None


def parsed_lines(raw: bytes, path: Path, allowed: str) -> Iterator[tuple[str, object]]:
    """Yield the place and the value of each JSON line of a file. Raises QuestionsError."""
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, parsed(line, "line", where, allowed)


def shown(value: object) -> str:
    """Return a JSON value in short, for messages."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one record, read strictly; an absent one and null are the same.

    Every reader raises QuestionsError for a value that is not of its kind.
    """

    fields: Mapping[str, Any]
    where: str

    @staticmethod
    def of(value: object, where: str, allowed: str) -> Fields:
        """Return the fields of an object; raises QuestionsError for anything else."""
        if not isinstance(value, dict):
            raise QuestionsError(f"The record is {shown(value)}.", where=where, allowed=allowed)
        return Fields(cast(dict[str, Any], value), where)

    def has(self, *names: str) -> bool:
        """Return whether the record has all of these fields."""
        return all(self.fields.get(name) is not None for name in names)

    def check(self, required: Sequence[Sequence[str]], allowed: str) -> None:
        """Raise QuestionsError unless the record has a field of each group."""
        missing = [f'"{names[0]}"' for names in required if not any(map(self.has, names))]
        if missing:
            raise QuestionsError(
                f"The record has no {', no '.join(missing)}.",
                where=f"{self.where}, with the fields {shown(list(self.fields))}",
                allowed=allowed,
            )

    def first(self, names: Sequence[str]) -> str:
        """Return the name of the first of these fields that the record has; it must have one."""
        return next(name for name in names if self.has(name))

    def id(self, names: Sequence[str] = ID_FIELDS) -> str:
        """Return the first of these fields that the record has, as a string; it must have one."""
        name = self.first(names)
        value = self.fields[name]
        if isinstance(value, bool) or not isinstance(value, str | int) or str(value).strip() == "":
            raise self.wrong(name, "a string or a whole number")
        return str(value)

    def optional_id(self) -> str | None:
        """Return the id of the record, None if it has none."""
        return None if first_field(self.fields, ID_FIELDS) is None else self.id()

    def text(self, name: str) -> str:
        value = self.fields[name]
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(name, "a string that is not empty")
        return nfc(value)

    def optional_text(self, names: Sequence[str]) -> str | None:
        """Return the first of these fields that the record has, None if it has none."""
        return self.text(self.first(names)) if any(map(self.has, names)) else None

    def flag(self, name: str, default: bool) -> bool:
        value = self.fields.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def text_or_texts(self, name: str) -> list[str]:
        """Return the strings of a field that is one string, or a list with at least one."""
        value = self.fields[name]
        if isinstance(value, str) and value.strip():
            return [nfc(value)]
        if isinstance(value, list) and value:
            return self.strings(name)
        raise self.wrong(name, "a string that is not empty, or a list of them")

    def strings(self, name: str) -> list[str]:
        return self.items(name, "a list of strings that are not empty", _text)

    def texts_in(self, name: str) -> list[str]:
        """Return the texts of a field that is a string or a list of strings, without blank ones and
        values that are not strings."""
        value = self.fields.get(name)
        items = cast(list[object], value) if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in items):
            return []
        return [text for item in items if (text := _text(item)) is not None]

    def sentences(self, name: str) -> list[GoldSentence]:
        """Return facts, each a title and the number of a sentence, in pairs or in two columns."""
        if isinstance(self.fields.get(name), dict):
            return self._columns(name)
        return self.items(name, "a list of [title, sentence number]", _sentence)

    def _columns(self, name: str) -> list[GoldSentence]:
        columns = cast(dict[str, object], self.fields[name])
        titles, numbers = columns.get("title"), columns.get("sent_id")
        if isinstance(titles, list) and isinstance(numbers, list):
            pairs = zip(cast(list[object], titles), cast(list[object], numbers), strict=False)
            read = [_sentence([title, number]) for title, number in pairs]
            good = [item for item in read if item is not None]
            if len(good) == len(cast(list[object], titles)) == len(cast(list[object], numbers)):
                return good
        raise self.wrong(
            name, 'a list of [title, sentence number], or {"title": [], "sent_id": []}'
        )

    def triples(self, name: str) -> tuple[Triple, ...]:
        """Return a chain of facts; evidence that is text, as in A-RAG's files, gives none."""
        value = self.fields.get(name)
        if not isinstance(value, list) or all(
            isinstance(item, str) for item in cast(list[object], value)
        ):
            return ()
        return tuple(self.items(name, "a list of [subject, relation, object]", _triple))

    def passages(self, name: str) -> list[GoldPassage]:
        return self.items(name, 'a list of {"title", "text"}', _passage)

    def objects(self, name: str) -> list[Fields]:
        """Return the fields of each object of a list."""
        objects = self.items(name, "a list of objects", _object)
        return [
            Fields(fields, f"{self.where}, {name} {number}")
            for number, fields in enumerate(objects, 1)
        ]

    def items(self, name: str, allowed: str, read: Callable[[object], _Item | None]) -> list[_Item]:
        """Return ``read`` of each item of a list; ``read`` returns None for an item that it does
        not understand."""
        value = self.fields.get(name)
        if value is None:
            return []
        items = cast(list[object], value) if isinstance(value, list) else [None]
        read_items = [read(item) for item in items]
        good = [item for item in read_items if item is not None]
        if len(good) != len(items):
            raise self.wrong(name, allowed)
        return good

    def wrong(self, name: str, allowed: str) -> QuestionsError:
        return QuestionsError(
            f'The field "{name}" is {shown(self.fields[name])}.',
            where=self.where,
            allowed=allowed,
            do="Fix the record.",
        )


def _text(value: object) -> str | None:
    return nfc(value) if isinstance(value, str) and value.strip() else None


def _sentence(value: object) -> GoldSentence | None:
    if not isinstance(value, list):
        return None
    items = cast(list[object], value)
    if len(items) != 2 or not isinstance(items[1], int) or isinstance(items[1], bool):
        return None
    title = _text(items[0])
    return None if title is None else GoldSentence(title, items[1])


def _triple(value: object) -> Triple | None:
    if not isinstance(value, list):
        return None
    items = [_text(item) for item in cast(list[object], value)]
    texts = [item for item in items if item is not None]
    return (texts[0], texts[1], texts[2]) if len(texts) == len(items) == 3 else None


def _object(value: object) -> dict[str, Any] | None:
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _passage(value: object) -> GoldPassage | None:
    fields = _object(value)
    if fields is None:
        return None
    title, text = fields.get("title"), _text(fields.get("text"))
    if text is None or not (title is None or isinstance(title, str)):
        return None
    return GoldPassage(_text(title), text)


Shape = Literal[
    "plain", "MuSiQue", "2WikiMultiHopQA", "HotpotQA", "A-RAG or GraphRAG-Bench", "KILT", "BEIR",
    "WixQA", "FinanceBench", "BrowseComp-Plus",
]  # fmt: skip

ALLOWED = (
    'JSON lines or one JSON array of {"question", "answer"}, with "id", "question_type", '
    '"answer_aliases", "supporting_titles" and "evidence" where known; question files of A-RAG, '
    "2WikiMultiHopQA, MuSiQue, HotpotQA, GraphRAG-Bench, KILT, WixQA, FinanceBench and "
    "BrowseComp-Plus (decrypted) as they are; "
    "folders of BEIR"
)

_GOLD_GRADE = 2
"""The grade, from which on a relevant document holds the answer itself."""
NO_ID = ""
"""The id of a question whose record has none, until the whole file is read."""
_TYPES = ("question_type", "type")
_REQUIRED = (("question",), ("answer",))


def read_record(value: object, where: str) -> tuple[Shape, Question]:
    """Return the question of a record, whose id is NO_ID if it has none, and the name of its shape.

    Raises QuestionsError."""
    fields = Fields.of(value, where, ALLOWED)
    shape = shape_of(fields)
    if shape == "KILT":
        return shape, _kilt(fields)
    if shape == "BrowseComp-Plus":
        return shape, _browsecomp_plus(fields)
    fields.check(_REQUIRED, ALLOWED)
    if shape == "FinanceBench":
        return shape, _financebench(fields)
    return shape, _question(fields, shape)


def shape_of(fields: Fields) -> Shape:
    """Return the shape of a record, recognised by the fields that only this shape has."""
    if fields.has("input") and not fields.has("question"):
        return "KILT"
    if fields.has("query", "gold_docs"):
        return "BrowseComp-Plus"
    if fields.has("financebench_id"):
        return "FinanceBench"
    if fields.has("article_ids"):
        return "WixQA"
    if fields.has("question_decomposition"):
        return "MuSiQue"
    if fields.has("evidences"):
        return "2WikiMultiHopQA"
    if fields.has("supporting_facts"):
        return "HotpotQA"
    if fields.has("source", "question_type"):
        return "A-RAG or GraphRAG-Bench"
    return "plain"


def _question(fields: Fields, shape: Shape) -> Question:
    hops = _musique_hops(fields) if shape == "MuSiQue" else _named_hops(fields)
    evidence = fields.triples("evidence") or fields.triples("evidences")
    sentences = fields.sentences("supporting_facts") or fields.sentences("supporting_sentences")
    titles = tuple(
        dict.fromkeys(_supporting_titles(fields, hops, [sentence.title for sentence in sentences]))
    )
    return Question(
        id=fields.optional_id() or NO_ID,
        text=fields.text("question"),
        answers=tuple(
            dict.fromkeys([*fields.text_or_texts("answer"), *fields.strings("answer_aliases")])
        ),
        type=fields.optional_text(_TYPES),
        supporting_titles=titles,
        evidence=evidence,
        hops=hops or triple_hops(evidence, titles),
        supporting_sentences=tuple(sentences),
        supporting_passages=tuple(_passages(fields, titles)),
        relevant_documents=tuple((id, 1) for id in dict.fromkeys(fields.strings("article_ids"))),
        source=fields.optional_text(("source",)),
        answerable=fields.flag("answerable", default=True),
    )


def _supporting_titles(
    fields: Fields, hops: Sequence[Hop], of_sentences: Sequence[str]
) -> Sequence[str]:
    if fields.has("decomposition_support"):
        return fields.strings("decomposition_support")
    if of_sentences and fields.has("supporting_facts"):
        return of_sentences
    return fields.strings("supporting_titles") or [hop.title for hop in hops if hop.title]


def _passages(fields: Fields, titles: Sequence[str]) -> list[GoldPassage]:
    """Return the texts that support the answer: named as such, marked as such, or those with the
    titles among the passages given with the question."""
    for name in ("supporting_passages", "supporting"):
        if fields.has(name):
            return fields.passages(name)
    if fields.has("paragraphs"):
        return [passage for passage, supports in _paragraphs(fields) if supports]
    if fields.has("context"):
        return [passage for passage in _context(fields) if passage.title in titles]
    return [GoldPassage(None, text) for text in fields.texts_in("evidence")]


# Chains


def triple_hops(triples: Sequence[Triple], titles: Sequence[str]) -> tuple[Hop, ...]:
    """Return triples as hops; if a subject is a supporting title, that passage holds the hop."""
    return tuple(
        Hop(None, subject, relation, answer, subject if subject in titles else None, None)
        for subject, relation, answer in triples
    )


def _named_hops(fields: Fields) -> tuple[Hop, ...]:
    """Return hops in the plain shape that this project writes."""
    return tuple(
        Hop(
            question=hop.optional_text(("question",)),
            subject=hop.optional_text(("subject",)),
            relation=hop.optional_text(("relation",)),
            answer=hop.text("answer"),
            title=hop.optional_text(("title",)),
            text=hop.optional_text(("text",)),
        )
        for hop in _objects_with(fields, "hops", ("answer",))
    )


def _musique_hops(fields: Fields) -> tuple[Hop, ...]:
    """Return MuSiQue's decomposition; the passage of a step is named by the number of its paragraph
    or, in files without paragraphs, in ``decomposition_support`` and ``supporting``."""
    steps = _objects_with(fields, "question_decomposition", ("question", "answer"))
    if fields.has("paragraphs"):
        passages = [_paragraph_of(step, fields) for step in steps]
    else:
        passages = _supports(fields, steps)
    return tuple(
        Hop(
            question=step.text("question"),
            subject=None,
            relation=None,
            answer=step.text("answer"),
            title=None if passage is None else passage.title,
            text=None if passage is None else passage.text or None,
        )
        for step, passage in zip(steps, passages, strict=True)
    )


def _objects_with(fields: Fields, name: str, required: Sequence[str]) -> list[Fields]:
    steps = fields.objects(name)
    for step in steps:
        step.check([(name,) for name in required], f"steps of {', '.join(required)}")
    return steps


def _paragraph_of(step: Fields, fields: Fields) -> GoldPassage | None:
    """Return the paragraph that holds a step; none if the question lacks it on purpose."""
    number = step.fields.get("paragraph_support_idx")
    if number is None:
        return None
    for paragraph, (passage, _) in zip(
        fields.objects("paragraphs"), _paragraphs(fields), strict=True
    ):
        if paragraph.fields.get("idx") == number:
            return passage
    raise step.wrong("paragraph_support_idx", 'the "idx" of one of the paragraphs, or null')


def _paragraphs(fields: Fields) -> list[tuple[GoldPassage, bool]]:
    """Return MuSiQue's paragraphs, and whether they support the answer."""
    paragraphs: list[tuple[GoldPassage, bool]] = []
    for paragraph in fields.objects("paragraphs"):
        paragraph.check(
            [("title",), ("paragraph_text",)], 'paragraphs of "title", "paragraph_text"'
        )
        passage = GoldPassage(paragraph.text("title"), paragraph.text("paragraph_text"))
        paragraphs.append((passage, paragraph.flag("is_supporting", default=False)))
    return paragraphs


def _supports(fields: Fields, steps: Sequence[Fields]) -> list[GoldPassage | None]:
    """Return a passage for each step: its title, and of several texts the one with the answer."""
    titles = fields.strings("decomposition_support")
    if not titles:
        return [None] * len(steps)
    if len(titles) != len(steps):
        raise fields.wrong("decomposition_support", f"{len(steps)} titles, one a step")
    passages = fields.passages("supporting")
    supporting: list[GoldPassage | None] = []
    for title, step in zip(titles, steps, strict=True):
        texts = [passage for passage in passages if passage.title == title]
        answer = step.text("answer").casefold()
        with_answer = [passage for passage in texts if answer in passage.text.casefold()]
        supporting.append((with_answer or texts or [GoldPassage(title, "")])[0])
    return supporting


# Passages given with the question


def _context(fields: Fields) -> list[GoldPassage]:
    """Return HotpotQA's ten passages: [title, sentences] each, or in two columns."""
    value = fields.fields["context"]
    if not isinstance(value, dict):
        return fields.items("context", "a list of [title, [sentence, ...]]", _context_passage)
    columns = cast(dict[str, object], value)
    titles, sentences = columns.get("title"), columns.get("sentences")
    if not isinstance(titles, list) or not isinstance(sentences, list):
        raise fields.wrong("context", 'a list of [title, [...]], or {"title": [], "sentences": []}')
    pairs = zip(cast(list[object], titles), cast(list[object], sentences), strict=False)
    return [passage for pair in pairs if (passage := _context_passage(list(pair))) is not None]


def _context_passage(value: object) -> GoldPassage | None:
    row = cast(list[object], value) if isinstance(value, list) else []
    if len(row) != 2 or not isinstance(row[0], str) or not isinstance(row[1], list):
        return None
    sentences = [sentence for sentence in cast(list[object], row[1]) if isinstance(sentence, str)]
    return GoldPassage(nfc(row[0]), nfc("".join(sentences)))


def _browsecomp_plus(fields: Fields) -> Question:
    """Return a question whose gold documents, which hold the answer, have the grade 2, and whose
    other evidence has the grade 1."""
    fields.check((("query",), ("answer",)), ALLOWED)
    grades: dict[str, int] = {}
    for name, grade in (("gold_docs", _GOLD_GRADE), ("evidence_docs", 1)):
        for document in fields.objects(name):
            document.check((("docid",),), '"gold_docs" and "evidence_docs" of {"docid"}')
            grades.setdefault(document.id(("docid",)), grade)
    return Question(
        id=fields.optional_id() or NO_ID,
        text=fields.text("query"),
        answers=(fields.text("answer"),),
        relevant_documents=tuple(grades.items()),
    )


# KILT


def _kilt(fields: Fields) -> Question:
    """Return answers and evidence of KILT. Every output is an answer, or the pages that hold
    one, or both; the pages of an output are one set of evidence, and each set is sufficient."""
    fields.check((("input",), ("output",)), ALLOWED)
    answers: list[str] = []
    sets: list[tuple[str, ...]] = []
    pages: dict[str, int] = {}
    for output in fields.objects("output"):
        if output.has("answer"):
            answers.append(output.text("answer"))
        titles: list[str] = []
        for page in output.objects("provenance"):
            page.check((("wikipedia_id",), ("title",)), 'provenance of "wikipedia_id" and "title"')
            titles.append(page.text("title"))
            pages[page.id(("wikipedia_id",))] = 1
        if titles:
            sets.append(tuple(dict.fromkeys(titles)))
    if not answers:
        raise QuestionsError(
            "No output has an answer.",
            where=fields.where,
            allowed='"output": [{"answer": "...", "provenance": [...]}, ...]',
            do="Use a part of the task that is published with answers, train or dev.",
        )
    distinct = list(dict.fromkeys(sets))
    return Question(
        id=fields.optional_id() or NO_ID,
        text=fields.text("input"),
        answers=tuple(dict.fromkeys(answers)),
        supporting_titles=distinct[0] if distinct else (),
        alternative_titles=tuple(distinct[1:]),
        relevant_documents=tuple(pages.items()),
    )


# FinanceBench


def _financebench(fields: Fields) -> Question:
    """Return a question of FinanceBench, whose evidence is pages of PDF files: their full texts,
    under the names of the files.

    Read from ``financebench_open_source.jsonl`` at cc39aeb of its repository, which has the file of
    a piece of evidence in ``doc_name``; its guide calls the field ``evidence_doc_name``.
    """
    pages: list[GoldPassage] = []
    for piece in fields.objects("evidence"):
        names = ("evidence_doc_name", "doc_name")
        texts = ("evidence_text_full_page", "evidence_text")
        piece.check((names, texts), 'evidence of "doc_name" and "evidence_text"')
        file = f"{piece.text(piece.first(names))}.pdf"
        pages.append(GoldPassage(file, piece.text(piece.first(texts))))
    files = [page.title for page in pages if page.title is not None]
    if not files and fields.has("doc_name"):
        files = [f"{fields.text('doc_name')}.pdf"]
    return Question(
        id=fields.id(("financebench_id",)),
        text=fields.text("question"),
        answers=tuple(fields.text_or_texts("answer")),
        type=fields.optional_text(_TYPES),
        supporting_passages=tuple(dict.fromkeys(pages)),
        relevant_documents=tuple((file, 1) for file in dict.fromkeys(files)),
    )
