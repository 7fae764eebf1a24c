"""The ends of sentences, in several languages: real cases, and properties of all texts."""

import re
from collections.abc import Iterator
from typing import Any, SupportsIndex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arag_search.corpus import split_at
from index_jobs.cutting import sentences as cutting
from index_jobs.cutting.sentences import LONG_CHARACTERS, MAX_OPEN, WINDOW_CHARACTERS, sentence_ends

CASES = {
    "titles": [
        "Ave Caesar! is a 1919 film.| It was lost for years.",
        "Love, Honor and Oh-Baby! is a comedy.| Who wrote it?| Nobody knows.",
        "He saw Who's There? and Help! in one week.| She saw neither.",
        "Help! (1965) was their second film.| It was shot in colour.",
        "Guess Who? (album) sold well.| Critics were kinder to the next.",
        "Arise! (German: Steh auf!) is a silent film.| It has six reels.",
        "Yahoo! hired her in 1999.| She left after a year.",
        "The musical Oh! is old, Mamma Mia! is not.",
        '"Where Are You?" is a song.| "Stop!" is another.',
    ],
    "initials": [
        "J. R. Smith plays guard.| He was born in 1985.",
        "The letters of J.R.R. Tolkien and C. S. Lewis were found.| They were dull.",
        "É. Zola wrote it.| Ö. Maier read it.",
        "Written by A. C. D. Clarke and edited by M. Neel.| It sold out.",
        "They fought in World War I.| He came home.| So did I.| We left.",
        "She takes vitamin C.| It helps.",
    ],
    "abbreviations": [
        "Dr. Who met Prof. Higgins and Mrs. Dalloway.| They talked.",
        "Hon. Kathleen Wynne spoke.| The hall was full.",
        "See Fig. 3, vol. 2 and pp. 5 to 9.| The rest is in No. 12.",
        "He lived in St. Louis, i.e. far away.| She lived near.",
        "He joined the U.S. Army in Jan. 1942.| He left the U.S.| The war was over.",
        "It weighs approx. 5 kg, cf. table 2.| That is little.",
        "Bring pens, paper, etc.| The office has none.",
        "Shows et al. [12] that it holds.| We agree.",
    ],
    "brackets": [
        "He (born in Rome. Raised in Bern. Really!) died in 1950.| She did not.",
        "The town (pop. 500. Formerly 900) is old.| It has a church.",
        "They met [sic. The text says so.] in May.| It rained.",
        "He smiled :( and left.| She stayed.",
        "(See below.) The rest is known.| Is it?",
        "Items: a) tea.| b) milk.| c) sugar.| All are cheap.",
        "It grew.[3]| Then it shrank.[4][5]| Now it is gone.",
        "It does not apply.[citation needed] | The law changed.",
    ],
    "code": [
        "The method sets self._colors and returns.| Nothing else is set.",
        "Use .NET or Node.js here.| Avoid asp.net there.",
        "Call df.groupby().sum() first.| Then call df.plot.| Both are slow.",
        "Edit ~/.bashrc or C:\\dir.old\\x.txt now.| Restart then.",
        "Version 1.2.3 is out.| Version 2.0 is not.",
        "Set x = a[0].b if a.b.c else None.| Return x.",
        "It raises os.error.Timeout!| Catch it.",
    ],
    "addresses": [
        "Look at https://example.org/a?b=c.d and www.example.com today.| It moved.",
        "Write to jo.smith@example.org.| She answers.",
        "It is on example.org.| https://example.org has more.",
    ],
    "numbers": [
        "It costs $5.00 or 4.50 euros.| That is 3.14 times more.",
        "He was no. 5 of 12.| She was no. 1.",
        "At 5.30 p.m. he left.| At 6 she came.",
        "1. First point\n|2. Second point\n|3. Third point",
        "Of 10.5 million, 3.2% remain.| 2019 was better.",
    ],
    "quotes": [
        'He said "No! Never. Go!" and left.| She stayed.',
        '"Why?" she asked.| "Because!" he said.',
        "“It is over.”| She sat down.",
        "'What now?' he thought.| Nothing came.",
        'It is the "best song." | "Most people agree," he said.',
    ],
    "ellipses": [
        "Wait... what is it?| Yes...| And so on.",
        "He came … and went.| She did not.",
        "Well . . . it is late.| Go home.",
    ],
    "layout": [
        "History\n\n|The town is old. |More on\nthe town follows. |It is small.",
        "- tea\n|- milk\n|- sugar",
        "The end.\n\n|a new paragraph begins small.",
        "This sentence is wrapped after a point, e.g.\nhere, by an editor.| It goes on.",
        "Facts:\n|• It is old. \n|• It is small.",
    ],
    "style": [
        "i went home.| then i slept.| it was late.",
        "Levels fell.| mRNA rose.| pH did not change.",
        "Cells grow.| p16 stops them.| That is known.",
    ],
    "German": [
        "Er kam am 3. Mai 1909 an.| Im 19. Jahrhundert war das neu.",
        "Es war z. B. Dr. Maier da, d. h. einer der Ärzte.| Er blieb.",
        "Die Hl. Maria steht in Bd. 3, Nr. 5 und Abb. 7.| Sie ist alt.",
        "„Kommst du?“ fragte sie.| Er kam nicht.",
        "Anna Müller, geb. Maier, schwieg usw. bis zum Abend.| Dann sprach sie.",
    ],
    "French": [
        "M. Dupont est là.| Mme. Curie aussi.| Et après ?| Rien.",
        "« Où vas-tu ? » dit-il.| Elle partit.",
        "Il vécut av. J.-C. et fut oublié.| On le retrouva.",
        "Mlle. Rose habite ici, cf. p. 12.| Elle chante.",
    ],
    "Spanish": [
        "¡Hola!| ¿Qué tal?| El Sr. López y la Sra. Ruiz vienen.| ¡Basta!",
        "En EE. UU. hay más.| Aquí no.",
        "La Dña. Inés vive en la pág. 5, núm. 7.| Es un libro.",
    ],
    "Russian": [
        "Пришёл А. С. Пушкин.| Он жил на ул. Ленина, т. е. рядом.",
        "Это было в 1999 г.| Он уехал.",
        "См. рис. 5 и табл. 2.| Проф. Иванов согласен.",
        "«Куда?» спросил он.| Она молчала.",
    ],
    "Greek": ["Ο Κ. Παπαδόπουλος ήρθε.| Έφυγε αμέσως."],
    "Chinese": [
        "我喜欢茶。|你呢？|好！|再见。",
        "“你好！”他说。|她没有回答。",
        "价格是3.5元。|很便宜。",
        "他（生于北京。长于上海）是作家。|她不是。",
    ],
    "Japanese": [
        "今日は晴れです。|明日は雨でしょう。",
        "「そうですか？」と彼は言った。|彼女は笑った。",
        "『雨。風』は古い本だ。|誰も読まない。",
        "値段は１．５倍です。|高いですね！|はい。",
    ],
    "Thai": [
        "กรุงเทพมหานครเป็นเมืองหลวง\n|เชียงใหม่อยู่ทางเหนือ",
        "แม่น้ำสายนี้ไหลผ่านหลายจังหวัดในภาคกลางและเป็นเส้นทางสำคัญของการค้าขายมาตั้งแต่สมัยโบราณ |ผู้คนอาศัยอยู่ริมน้ำ",
    ],
    "Lao": ["ນະຄອນຫຼວງວຽງຈັນເປັນເມືອງຫຼວງ\n|ແມ່ນ້ຳຂອງໄຫຼຜ່ານ"],
    "Khmer": ["ខ្ញុំទៅផ្សារ។ |គាត់នៅផ្ទះ។"],
    "Burmese": ["ငါသွားမယ်။ |သူလာတယ်။"],
    "Arabic": ["هل أنت هنا؟ |نعم، أنا هنا. |حسنا!"],
    "Urdu": ["یہ ایک ہے۔ |وہ دو ہے۔"],
    "Hindi": ["भारत एक देश है। |यह बड़ा है। |क्या आप आएँगे?"],
    "Amharic": ["ሰላም ነው። |እንዴት ነህ።"],
    "Armenian": ["Սա մեկն է։ |Դա երկուսն է։"],
}
"""Texts with a bar at each end of a sentence but the last."""

TABLE = [(kind, text) for kind, texts in CASES.items() for text in texts]


def sentences(text: str, title: str = "") -> list[str]:
    return split_at(text, tuple(sentence_ends(text, title)))


@pytest.mark.parametrize(("kind", "marked"), TABLE)
def test_a_sentence_ends_where_a_reader_would_end_it(kind: str, marked: str) -> None:
    parts = [part.strip() for part in sentences(marked.replace("|", ""))]
    assert parts == [part.strip() for part in marked.split("|")], kind


@pytest.mark.parametrize("title", ["A. B", ". B", "! ", "(", "a. B (film)", "x. " * 500])
def test_a_title_that_occurs_only_inside_words_hides_no_end(title: str) -> None:
    assert sentences("It is in the USA. Bob went. No! Stay.", title) == [
        "It is in the USA. ",
        "Bob went. ",
        "No! ",
        "Stay.",
    ]


@pytest.mark.parametrize(
    ("title", "marked"),
    [
        ("Stop! Or I Shoot", "Stop! Or I Shoot is a comedy.| It was panned."),
        ("Author! Author! (film)", "In 1982 Author! Author! was shot.| Author! Author! flopped."),
        ("Who? What? Where?", "Few know Who? What? Where? by name.| Who? What?| Nothing."),
    ],
)
def test_no_sentence_ends_inside_the_title_of_the_document(title: str, marked: str) -> None:
    parts = [part.strip() for part in sentences(marked.replace("|", ""), title)]
    marks = [part.strip() for part in marked.split("|")]
    if title.startswith("Who"):
        assert parts[0] == marks[0]
        assert len(parts) > 2  # a part of the title is not the title
    else:
        assert parts == marks


PIECES = st.sampled_from(
    [
        *("Vivaldi ", "Dr. ", "A. ", "e.g. ", ". ", "! ", "? ", '"', "(", ")", " ", "1.5 ", "\n\n"),
        *("the ", "film", "Oh", "[", "]", "[1]", "3. ", "é", "日本。", "「", "」", "\u2028",
        "ไทย "), *("\u00a0", "“", "”", "’s ", "🎉", "\n", "\t", "։ ", "।", "...", "…",
        ". \r\n", "word. Then "),
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=90).map("".join))
LONG_TEXTS = st.builds(str.__mul__, TEXTS, st.integers(1, 60))


@given(TEXTS | LONG_TEXTS, TEXTS)
@example("a. " * 4000, "")
@example("word " * 3000, "")
@example("G.\u2028 Mahler", "")
@example(" \n ", "")
@example("", "")
@example("(Aa. " * 3000, "")
@example("ไทย" * 3000, "")
@example("A. Bc " * 900, "A. Bc A")
def test_sentences_partition_any_text_within_bounds(text: str, title: str) -> None:
    parts = sentences(text, title)
    assert "".join(parts) == text
    assert all(not part.isspace() for part in parts) or text.isspace()
    blanks = max((len(run) for run in re.findall(r"\s+", text)), default=0)
    assert all(len(part) <= WINDOW_CHARACTERS + blanks for part in parts)


def is_inside_parenthesis(text: str, end: int) -> bool:
    """Return whether an offset is between a parenthesis and its partner, by looking at each."""
    for begin in (place for place in range(end) if text[place] == "("):
        depth = 0
        for place in range(begin, len(text)):
            depth += {"(": 1, ")": -1}.get(text[place], 0)
            if not depth:
                if place >= end and "\n" not in text[begin:place]:
                    return True
                break
    return False


PROSE = st.lists(
    st.sampled_from(
        ["He came. ", "it is", "(then ", "(Born. ", ")", " ", "Rome! ", "a ", "Who? ", "x ", ". "]
    ),
    max_size=40,
).map(lambda words: "The " + "".join(words))


@given(PROSE)
@example("The (then (then )He came. He came. )")
@example("The )(then (then )He came. He came. )")
def test_no_sentence_of_a_short_text_ends_inside_a_parenthesis_or_before_a_small_word(
    text: str,
) -> None:
    ends = sentence_ends(text[:LONG_CHARACTERS])
    for end in ends[:-1]:
        following = re.match(r"[(\s]*(\w\w+)", text[end:LONG_CHARACTERS])
        assert following is None or not following[1].islower(), text[end:]
        assert not is_inside_parenthesis(text[:LONG_CHARACTERS], end), text[end:]


@given(TEXTS)
def test_corrections_only_remove_ends_where_sentencex_finds_all(text: str) -> None:
    marked = re.sub(r'["“”\[\]ก-๛]|\s\Z', "", text)  # where ends are moved or added
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "_joined", lambda text, ends, title: ends)
        uncorrected = set(sentence_ends(marked))
    assert set(sentence_ends(marked)) <= uncorrected


class Counted(str):
    """A text that counts the characters that are looked at one by one."""

    steps = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        self.steps += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("blank", ["\n", " ", "\r\n", "\u2029"])
def test_blank_lines_are_read_once(blank: str) -> None:
    text = Counted("A." + blank * 2_000 + "B." + blank * 2_000)
    assert cutting._joined_blanks(text, [*range(1, len(text) + 1)])[-1] == len(text)
    assert text.steps < 2 * len(text)


def test_few_of_the_brackets_that_are_never_closed_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = 0

    class Counting:
        """The pattern of brackets, which counts its matches."""

        @staticmethod
        def finditer(*arguments: Any) -> Iterator[re.Match[str]]:
            nonlocal steps
            for match in brackets.finditer(*arguments):
                steps += 1
                yield match

    brackets = cutting._BRACKETS
    monkeypatch.setattr(cutting, "_BRACKETS", Counting)
    text = "![" * 2_000
    sentence_ends(text)
    assert 0 < steps <= (MAX_OPEN + 1) * len(text) / 2


def test_a_title_that_is_longer_than_a_sentence_keeps_none_together() -> None:
    title = "Love. And more. " * 100
    assert len(sentences(title, title)) == 200
    assert len(sentences(title, title[:500])) < 200


def test_a_wrong_join_does_not_run_on() -> None:
    text = "The list: " + "it is one more of these. " * 200
    parts = sentences(text)
    assert all(len(part) <= LONG_CHARACTERS + 25 for part in parts)
    open_forever = "The list (" + "It is one more of these. " * 200
    assert len(sentences(open_forever)) == 200


def test_lines_of_a_long_list_are_sentences() -> None:
    text = "".join(f"- item number {number}\n" for number in range(100))
    assert len(text) > LONG_CHARACTERS
    assert len(sentences(text)) == 100
