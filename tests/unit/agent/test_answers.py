"""Parsing of a model's final reply into short answer, explanation and cited ids, without loss."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.agent.answers import MAX_CANDIDATES, Answer, has_answer_line, parse_answer
from arag_search.agent.prompts import prompt_text
from arag_search.agent.wording import NOT_FOUND, is_refusal

SHOWN = ("goldoni.1", "griselda.1", "0", "15", "notes/a, b.txt.2")


def answer_parts(text: str) -> tuple[str, str, tuple[str, ...]]:
    answer = parse_answer(text, SHOWN)
    return answer.short, answer.explanation, answer.cited_ids


def test_the_three_lines_are_read() -> None:
    text = "Answer: Paris\nExplanation: He died there.\nSources: goldoni.1, griselda.1"
    assert parse_answer(text, SHOWN) == Answer(
        "Paris", "He died there.", ("goldoni.1", "griselda.1"), (), text, form="label"
    )


@pytest.mark.parametrize(
    "text",
    [
        "**Answer:** Paris\n**Explanation:** He died there.\n**Sources:** [goldoni.1]",
        "**Answer**: **Paris**\n- Explanation: He died there.\n- Sources: `goldoni.1`.",
        '### Final answer: Paris\n\nexplanation : He died there.\n\nSOURCES: "goldoni.1"',
        "> Answer: Paris\n> Explanation: He died there.\n> Source: goldoni.1 (Carlo Goldoni)",
        "Sources: [goldoni.1] Carlo Goldoni\nExplanation: He died there.\nThe answer: Paris",
        "Answer: Paris [goldoni.1]\nExplanation: He died there.",
        "He died there.\n\nAnswer: Paris\nSources:\n- goldoni.1\n",
        "Answer: Rome\nAnswer: Paris\nReasoning: He died there.\nCitations: goldoni.1",
        "Answer：Paris\nExplanation：He died there.\nSources：goldoni.1",
    ],
)
def test_decorated_reordered_and_partial_lines_are_read_alike(text: str) -> None:
    assert answer_parts(text) == ("Paris", "He died there.", ("goldoni.1",))


def test_an_explanation_keeps_its_lines_and_its_citations() -> None:
    text = "Answer: yes\nExplanation: One [griselda.1].\nTwo [sic] [goldoni.1, 15]."
    assert answer_parts(text) == (
        "yes",
        "One [griselda.1].\nTwo [sic] [goldoni.1, 15].",
        ("griselda.1", "goldoni.1", "15"),
    )


@pytest.mark.parametrize(
    ("text", "short", "explanation"),
    [
        ("Paris", "Paris", ""),
        ("Paris.\n\nHe moved there in 1762.", "Paris.", "He moved there in 1762."),
        ("It was\nParis [goldoni.1].", "It was Paris .", ""),
        ("", "", ""),
        ("Answer:\nParis", "Paris", ""),
    ],
)
def test_without_labels_the_first_paragraph_is_the_answer(
    text: str, short: str, explanation: str
) -> None:
    assert answer_parts(text)[:2] == (short, explanation)


@pytest.mark.parametrize(
    ("sources", "cited"),
    [
        ("goldoni.1; griselda.1", ("goldoni.1", "griselda.1")),
        ("griselda.1 and goldoni.1", ("griselda.1", "goldoni.1")),
        ("notes/a, b.txt.2, 0", ("notes/a, b.txt.2", "0")),
        ("15", ("15",)),
        ("[0], [15]", ("0", "15")),
        ("goldoni.1, goldoni.1", ("goldoni.1",)),
        ("none", ()),
        ("N/A.", ()),
        ("", ()),
    ],
)
def test_shown_ids_are_found_in_any_list(sources: str, cited: tuple[str, ...]) -> None:
    answer = parse_answer(f"Answer: x\nSources: {sources}", SHOWN)
    assert (answer.cited_ids, answer.wrong_ids) == (cited, ())


@pytest.mark.parametrize(
    ("sources", "wrong"),
    [
        ("vivaldi.1", ("vivaldi.1",)),
        ("goldoni.10", ("goldoni.10",)),
        ("goldoni.1.2", ("goldoni.1.2",)),
        ("15.2", ("15.2",)),
        ("[goldoni.1], [vivaldi.1]", ("vivaldi.1",)),
        ("[goldoni.1], vivaldi.1", ("vivaldi.1",)),
        ("[goldoni.1] Goldoni, Carlo; [x]", ("x",)),
        ("gold.1 nope.9", ("gold.1", "nope.9")),
        ("[goldoni.1] [nope.9]", ("nope.9",)),
        ("goldoni.1 nope.9", ("nope.9",)),
        ("[goldoni.1 nope.9]", ("nope.9",)),
        ("[goldoni.1|nope.9]", ("nope.9",)),
        ("[0], [15] [99]", ("99",)),
        ("1. goldoni.1\n2. nope.9", ("nope.9",)),
        ("(goldoni.1), (nope.9)", ("nope.9",)),
        ("nope.9: Carlo Goldoni, a life", ("nope.9",)),
    ],
)
def test_ids_that_were_not_shown_are_wrong(sources: str, wrong: tuple[str, ...]) -> None:
    answer = parse_answer(f"Answer: x\nSources: {sources}", SHOWN)
    assert answer.wrong_ids == wrong
    assert answer.citation == "wrong"


def test_the_prompts_ask_for_not_found_and_it_cites_no_source() -> None:
    for name in ("answer_form", "forced_answer"):
        assert f'"Answer: {NOT_FOUND}"' in prompt_text(name)
    answer = parse_answer(f"Answer: {NOT_FOUND}\nSources: {NOT_FOUND}.", SHOWN)
    assert (answer.short, answer.citation) == (NOT_FOUND, "uncited")


@pytest.mark.parametrize(
    "text",
    ["Venice (implied)", "**Venice** (implied)", "**Venice (implied)**", "Venice (Implied)."],
)
def test_the_mark_of_an_implied_answer_is_no_part_of_it(text: str) -> None:
    answer = parse_answer(f"Answer: {text}\nSources: venice.1", {"venice.1"}, lambda ids: ())
    assert (answer.short, answer.cited_ids, answer.invented_ids) == ("Venice", ("venice.1",), ())
    assert parse_answer("Answer: An (implied) Venice").short == "An (implied) Venice"


def test_an_answer_line_begins_with_its_label() -> None:
    assert has_answer_line("Well.\n**Answer:** yes")
    assert not has_answer_line("1. Find the answer: the city.")


@given(st.text(), st.sets(st.text(min_size=1, max_size=5), max_size=5))
def test_any_text_is_parsed_and_preserved(text: str, shown: set[str]) -> None:
    answer = parse_answer(text, shown)
    assert answer.raw == text
    assert set(answer.wrong_ids) == set(answer.cited_ids) - shown
    assert len(set(answer.cited_ids)) == len(answer.cited_ids)


@given(
    st.lists(st.from_regex(r"[a-z0-9]{1,6}\.[1-9]", fullmatch=True), unique=True, max_size=6),
    st.sampled_from([", ", "; ", "\n- ", " and "]),
    st.sampled_from(["{}", "[{}]", '"{}"']),
)
def test_every_list_of_shown_ids_is_read_as_written(
    ids: list[str], separator: str, form: str
) -> None:
    text = f"Answer: x\nSources: {separator.join(form.format(id) for id in ids)}"
    assert parse_answer(text, [*ids, "other.1"]).cited_ids == tuple(ids)


@pytest.mark.parametrize(
    ("sources", "cited", "wrong"),
    [
        ("a.1 and b.2", ("a.1", "b.2"), ("b.2",)),
        ("b.2 & a.1.", ("b.2", "a.1"), ("b.2",)),
        ("a.1, c.1 and a.2", ("a.1", "c.1", "a.2"), ("c.1",)),
        ("a.1 and a.2", ("a.1", "a.2"), ()),
        ("a.1 (Apollo and 13)", ("a.1",), ()),
        ("a.1 and what it says", ("a.1",), ()),
        ("[a.1] and [b.2]", ("a.1", "b.2"), ("b.2",)),
        ("[a.1] Salt and Agent007", ("a.1",), ()),
    ],
)
def test_an_id_joined_by_and_to_one_that_was_shown_is_checked_too(
    sources: str, cited: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    answer = parse_answer(f"Answer: x\nSources: {sources}", ["a.1", "a.2"])
    assert (answer.cited_ids, answer.wrong_ids) == (cited, wrong)


# Ids and text


@pytest.mark.parametrize(
    "sources",
    [
        "Carlo Goldoni", "[Carlo Goldoni]", "published in 15", "in 1984, 15 years later", "-",
        "- ", "[-], [...]", "page 0 of the report",
    ],
)  # fmt: skip
def test_words_in_a_list_of_sources_that_are_no_ids_are_text(sources: str) -> None:
    answer = parse_answer(f"Answer: x\nSources: {sources}", [*SHOWN, "-", "1984"])
    assert (answer.cited_ids, answer.wrong_ids, answer.citation) == ((), (), "uncited")


@pytest.mark.parametrize(
    ("text", "short", "cited", "wrong"),
    [
        ("In [15] steps", "In [15] steps", (), ()),
        ("Vienna [15]", "Vienna", ("15",), ()),
        ("Vienna [15], Paris [0].", "Vienna , Paris .", ("15", "0"), ()),
        ("Vienna [15] and Paris [0]", "Vienna and Paris", ("15", "0"), ()),
        ("Vienna [nope.9]", "Vienna", ("nope.9",), ("nope.9",)),
        ("Vienna [99]", "Vienna", ("99",), ("99",)),
        ("Vienna [goldoni.1][griselda.1]", "Vienna", ("goldoni.1", "griselda.1"), ()),
        ("Vienna [goldoni.1; nope.9]", "Vienna", ("goldoni.1", "nope.9"), ("nope.9",)),
        ("Vienna 【goldoni.1】", "Vienna", ("goldoni.1",), ()),
        ("【Vienna】 [sic] [1740s]", "【Vienna】 [sic] [1740s]", (), ()),
        ("[goldoni.1] says Vienna", "says Vienna", ("goldoni.1",), ()),
        ("Vienna (goldoni.1)", "Vienna (goldoni.1)", (), ()),
        ("Vienna [Smith, 2004]", "Vienna [Smith, 2004]", (), ()),
    ],
)
def test_brackets_in_an_answer_are_citations_if_they_contain_ids_and_text_otherwise(
    text: str, short: str, cited: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    shown = [*SHOWN, "99 bottles"] if "1740s" not in text else ["goldoni.1"]
    answer = parse_answer(f"Answer: {text}", shown)
    assert (answer.short, answer.cited_ids, answer.wrong_ids) == (short, cited, wrong)


def test_only_ids_that_passages_have_are_citations_and_others_are_flagged_as_invented() -> None:
    candidates: list[str] = []

    def existing_ids(ids: Sequence[str]) -> set[str]:
        candidates.extend(ids)
        return {"old.7", "a b, c.1"} & set(ids)

    text = "Answer: V [old.7] [nope.9]\nSources: goldoni.1, old.7, [a b, c.1], [x], 12.3"
    answer = parse_answer(text, SHOWN, existing_ids)
    assert answer.short == "V"
    assert answer.cited_ids == ("goldoni.1", "old.7", "a b, c.1")
    assert answer.wrong_ids == ("old.7", "a b, c.1", "x", "12.3", "nope.9")
    assert answer.invented_ids == ("x", "12.3", "nope.9")
    assert answer.citation == "wrong"
    assert not {"goldoni.1", "15"} & set(candidates)
    answer = parse_answer("Answer: V\nSources: nope.9", SHOWN, existing_ids)
    assert (answer.cited_ids, answer.invented_ids, answer.citation) == ((), ("nope.9",), "wrong")


def test_an_index_looks_up_a_bounded_number_of_ids_per_reply() -> None:
    candidates: list[str] = []
    text = "Sources: " + ", ".join(f"[x.{number}]" for number in range(5_000))
    parse_answer(text, SHOWN, lambda ids: candidates.extend(ids) or ())
    assert len(candidates) == MAX_CANDIDATES


# Forms


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("# Answer\nParis\n\n# Explanation\nHe died.\n\n# Sources\na.1", "heading"),
        ("1. Answer: Paris\n2. Explanation: He died.\n3. Sources: a.1", "label, number"),
        ("Answer: \\boxed{\\text{Paris}}\nExplanation: He died.\nSources: a.1", "label, box"),
        ("He died.\n\nIt is $\\boxed{Paris}$ [a.1].", "paragraph, box"),
        ('{"answer": "Paris", "explanation": "He died.", "sources": ["a.1"]}', "json"),
        ('```json\n{"Answer": ["Paris"], "Reasoning": "He died.", "Sources": "a.1",}\n```', "json"),
        ("He died. <answer>Paris</answer>\nSources: a.1", "tag"),
        ("Antwort: Paris\nErklärung: He died.\nQuellen: a.1", "label, language"),
        (
            "**Respuesta final:** Paris\n**Explicación:** He died.\n**Fuentes:** a.1",
            "label, language",
        ),
        ("答案：Paris\n解释：He died.\n来源：a.1", "label, language"),
        ("Answer: Paris\nEvidence: [a.1]\nExplanation: He died.", "label, own label"),
        ("Answer: Paris\nExplanation: He died.\nSources: 1. a.1 2. a.1", "label, numbered sources"),
        # kaiko-ai/eva#973, EleutherAI/lm-evaluation-harness#3116
        ("He died.\n\n\\fbox{Paris} [a.1]", "paragraph, box"),
        # huggingface/Math-Verify#57
        (
            "The answer is \\boxed{Rome}.\n\nNo, it is \\boxed{Paris} [a.1]. He died.",
            "paragraph, box",
        ),
        # stanfordnlp/dspy#7955, stanfordnlp/dspy#7969
        (
            "[[ ## reasoning ## ]] He died. [[ ## answer ## ]] Paris [[ ## sources ## ]] a.1",
            "brackets",
        ),
        # Azure/azureml-assets#5274, konveyor/kai#700
        ("***ANSWER***: ***Paris***\n\n## Reasoning\nHe died.\n\n## Sources\na.1", "label"),
        # openai/codex-plugin-cc#583, symfony/ai#2478
        (
            '```\n{"final_answer": "Paris", "explanation": "He died.", "citations": ["a.1"]}\n```',
            "json",
        ),
        # AI-Hypercomputer/maxtext#4150
        ("He died. <answer>\\boxed{Paris}</answer>\nSources: a.1", "tag, box"),
        ("<answer>Answer: Paris\nExplanation: He died.\nSources: a.1</answer>", "label"),
        ("<|begin_of_box|>Answer: Paris [a.1]<|end_of_box|> He died.", "label"),  # GLM
        # openai/simple-evals, its answers in other languages
        ("Réponse : Paris\nExplication : He died.\nSources : a.1", "label, language"),
    ],
)
def test_forms_of_answers_that_models_write_are_read_and_named(text: str, form: str) -> None:
    answer = parse_answer(text, {"a.1"})
    assert (answer.short, answer.cited_ids, answer.form) == ("Paris", ("a.1",), form)
    assert "He died." in answer.explanation or "No, it is" in text
    assert has_answer_line(text)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ('He wrote "Answer: yes" there.', 'He wrote "Answer: yes" there.'),
        ("**The Answer**\n\nAn album by Vinnie Paz.", "The Answer"),
        ("**Source**\n\nThe engine of Half-Life 2.", "Source"),
        ("Source: the Nile", "Source: the Nile"),
        ('It returns {"answer": 42} as text.', 'It returns {"answer": 42} as text.'),
        ("It defines \\boxed{x}, a frame.", "It defines \\boxed{x}, a frame."),
        ("Write `\\boxed{x}`.", "Write `\\boxed{x}`."),
        ("In seiner Antwort sagte er: nein.", "In seiner Antwort sagte er: nein."),
    ],
)
def test_words_of_labels_in_an_answer_are_text(text: str, short: str) -> None:
    answer = parse_answer(text)
    assert (answer.short, answer.form) == (short, "paragraph")
    assert not has_answer_line(text)


def test_a_label_wins_over_other_forms_in_its_text() -> None:
    text = 'Answer: {"answer": 42}\nExplanation: In <answer>x</answer>.\nEvidence: it says so.'
    answer = parse_answer(text)
    assert (answer.short, answer.form) == ('{"answer": 42}', "label")
    assert answer.explanation == "In <answer>x</answer>.\nEvidence: it says so."


@given(st.text(alphabet="abc \n.*#_-[]{}<>\\$"))
def test_a_text_without_labels_is_read_by_paragraphs(text: str) -> None:
    first = text.strip().partition("\n\n")[0]
    assert parse_answer(text).short == " ".join(first.strip().strip("*_`").split())
    assert not has_answer_line(text)


@pytest.mark.parametrize(
    "piece",
    ["\\boxed{", "\\boxed{{{a}", "\\boxed{a}[", "\\boxed{a} ", "boxed{" + "{y}" * 30, "{", "<a>b:"],
)
def test_a_long_answer_is_read_in_steps_that_grow_with_its_length(piece: str) -> None:
    # If they grew with its square, this would take minutes.
    parse_answer(piece * (300_000 // len(piece)))


@pytest.mark.parametrize(
    "text",
    [
        "nicht gefunden", "Die Antwort wurde im Korpus nicht gefunden.", "Keine Angabe",
        "No se encontró en el corpus", "no hay información", "introuvable dans le corpus",
        "Aucune information", "未找到", "在文档中未找到相关信息。", "見つかりませんでした",
        "не найдено в корпусе",
        "찾을 수 없습니다", "não encontrado", "non trovato nel corpus", "niet gevonden",
        "Die Quellen enthalten keine Informationen dazu.",  # software-mansion-labs/private-mind#357
        "没有找到相关信息", "не указано, но неизвестно",
        "申し訳ありませんが、コーパスには情報がありません。",
    ],
)  # fmt: skip
def test_refusals_in_other_languages_are_recognised(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    ["Nein", "No", "no", "Die Antwort", "No, se encontró muerto", "nicht gefunden, aber Paris",
     "未找到，但巴黎", "Der unbekannte Soldat", "text", "de", "Keine der beiden"],
)  # fmt: skip
def test_answers_in_other_languages_are_no_refusals(text: str) -> None:
    assert not is_refusal(text)
