"""One record of a file of questions, in any published shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal, cast

from arag_search.corpus import nfc
from arag_search.errors import QuestionsError
from arag_search.questions.question import GoldPassage, Hop, Question, Triple
from arag_search.questions.record_fields import Fields

Shape = Literal[
    "plain", "MuSiQue", "2WikiMultiHopQA", "HotpotQA", "A-RAG or GraphRAG-Bench", "KILT", "BEIR",
    "WixQA", "FinanceBench",
]  # fmt: skip

ALLOWED = (
    'JSON lines or one JSON array of {"question", "answer"}, with "id", "question_type", '
    '"answer_aliases", "supporting_titles" and "evidence" where known; question files of A-RAG, '
    "2WikiMultiHopQA, MuSiQue, HotpotQA, GraphRAG-Bench, KILT, WixQA and FinanceBench as they are; "
    "folders of BEIR"
)

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
    fields.check(_REQUIRED, ALLOWED)
    if shape == "FinanceBench":
        return shape, _financebench(fields)
    return shape, _question(fields, shape)


def shape_of(fields: Fields) -> Shape:
    """Return the shape of a record, recognised by the fields that only this shape has."""
    if fields.has("input") and not fields.has("question"):
        return "KILT"
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


def plain_record(question: Question) -> dict[str, Any]:
    """Return a question with an answer as a record of the plain shape, from which the same
    question is read. Alternative sets of titles, and judged documents, are lost."""
    first, *aliases = question.answers
    derived = question.hops == triple_hops(question.evidence, question.supporting_titles)
    return {
        "id": question.id,
        "question": question.text,
        "answer": first,
        "answer_aliases": aliases,
        "answerable": question.answerable,
        "question_type": question.type,
        "supporting_titles": list(question.supporting_titles),
        "supporting_sentences": [
            [sentence.title, sentence.number] for sentence in question.supporting_sentences
        ],
        "supporting_passages": [asdict(passage) for passage in question.supporting_passages],
        "evidence": [list(triple) for triple in question.evidence],
        "hops": [] if derived else [asdict(hop) for hop in question.hops],
        "source": question.source,
    }


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
