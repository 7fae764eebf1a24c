"""One record of a file of questions, in any published shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from arag_search.corpus import nfc
from arag_search.errors import QuestionsError
from arag_search.questions.fields import Fields, text_of
from arag_search.questions.question import GoldPassage, Hop, Question, Triple

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


def read_record(value: object, where: str) -> Question:
    """Return the question of a record, whose id is NO_ID if it has none. Shapes are recognised by
    the fields that only they have. Raises QuestionsError."""
    fields = Fields.of(value, where, ALLOWED)
    if fields.has("input") and not fields.has("question"):
        return _kilt(fields)
    if fields.has("query", "gold_docs"):
        return _browsecomp_plus(fields)
    fields.check(_REQUIRED, ALLOWED)
    return _financebench(fields) if fields.has("financebench_id") else _question(fields)


def _question(fields: Fields) -> Question:
    is_decomposed = fields.has("question_decomposition")
    hops = _musique_hops(fields) if is_decomposed else _named_hops(fields)
    evidence = fields.triples("evidence") or fields.triples("evidences")
    titles = tuple(dict.fromkeys(_supporting_titles(fields, hops)))
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
        supporting_passages=tuple(_passages(fields, titles)),
        relevant_documents=tuple((id, 1) for id in dict.fromkeys(fields.strings("article_ids"))),
        answerable=fields.flag("answerable", default=True),
    )


def _supporting_titles(fields: Fields, hops: Sequence[Hop]) -> Sequence[str]:
    allowed = "a list of [title, sentence number]"
    rows = fields.rows("supporting_facts", ("title", "sent_id"), allowed)
    of_sentences = rows.items("supporting_facts", allowed, _title_of_sentence)
    if fields.has("decomposition_support"):
        return fields.strings("decomposition_support")
    if of_sentences:
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
    # the plain shape that this project writes
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


def _title_of_sentence(value: object) -> str | None:
    match cast(list[object], value):
        case [title, int(number)] if not isinstance(number, bool):
            return text_of(title)
        case _:
            return None


def _context(fields: Fields) -> list[GoldPassage]:
    """Return HotpotQA's ten passages: [title, sentences] each, or in two columns."""
    allowed = "a list of [title, [sentence, ...]]"
    rows = fields.rows("context", ("title", "sentences"), allowed)
    return rows.items("context", allowed, _context_passage)


def _context_passage(value: object) -> GoldPassage | None:
    match cast(list[object], value):
        case [str(title), texts] if isinstance(texts, list):
            sentences = [text for text in cast(list[object], texts) if isinstance(text, str)]
            return GoldPassage(nfc(title), nfc("".join(sentences)))
        case _:
            return None


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
    """Return answers and evidence of KILT. Every output is an answer, or the pages that hold one,
    or both. The pages of an output are one set of evidence, and each set is sufficient."""
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
