"""The normal forms of words: one function, whose terms engines index and search."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arag_search.corpus import Chunk, TextKind, is_code, kind_of, nfc
from arag_search.query import analysis, dictionaries
from arag_search.query.forms import (
    HOLE,
    HOLE_COUNT,
    NONE,
    _pieces,
    _plain_signs,
    folded,
    forms_of_chunk,
    indexed,
    normal_forms,
    normal_spellings,
    normal_terms,
    steps,
)
from arag_search.query.lemmas import languages
from arag_search.query.markup import split

KINDS: tuple[TextKind, ...] = ("", "code", "markdown", "rst", "tex", "subtitles")
KATAKANA = re.compile("[\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")
TEXTS = st.text(
    st.sampled_from("aAbB xX_.-#+$@'’1é́ßЁйﬁｖカﾞ東\u00ad\u200dא\u05b0\U0001d49c\n")
) | st.text(max_size=60)


def words(text: str, language: str = "en") -> list[str]:
    terms = normal_terms(text, language)
    return terms[: terms.index(HOLE)] if HOLE in terms else terms


@pytest.mark.parametrize(
    ("language", "same"),
    [
        ("en", "film films filmed filming Films film's film’s FILMS"),
        ("en", "child children child's"),
        ("en", "index indices indexes"),
        ("en", "write wrote written"),
        ("en", "opera operas"),
        ("en", "zorg zorgs"),
        ("en", "zorgy zorgies"),
        ("de", "Haus Häuser hauses HÄUSER"),
        ("de", "Straße Straßen STRAßE"),
        ("de", "Tag Tage"),
        ("fr", "opéra l'opéra l’opéras opéras"),
        ("fr", "cheval chevaux"),
        ("es", "canción canciones"),
        ("ru", "город городах города"),
        ("ru", "елка ёлка"),
        ("fi", "käsi käden"),
        ("de", "einfärben eingefärbt eingefärbte einzufärben"),
        ("de", "begrenzen begrenzt begrenzten begrenzend"),
        ("de", "entpacken entpackt entpackte"),
        ("fr", "donner donne donnée données donnant"),
        ("fr", "commercial commerciale commerciaux"),
        ("fr", "rendre rendu rendue"),
        ("es", "cortar corta cortado cortarlo cortándola"),
        ("es", "contener contenido contenidos"),
        ("es", "selección selecciones seleccionar"),
        ("ru", "установить установлено установленный установленных"),
        ("ru", "использовать используемый использующий использующая"),
        ("ru", "частый часто"),
        ("ru", "зургистый зургистая зургистого"),
        ("fi", "kirjoittaa kirjoittaminen kirjoittava"),
        ("de", "Prüfungen prufungen Prüfung"),
        ("fr", "découvertes decouvertes découverte"),
        ("es", "canciones cancion canción"),
        ("de", "Wärmepumpen waermepumpe warmepumpe"),
        pytest.param("pl", "książki ksiazki książka", marks=pytest.mark.long),
        pytest.param("pt", "informações informacoes informação", marks=pytest.mark.long),
        pytest.param("tr", "çocuklar cocuklar", marks=pytest.mark.long),
        pytest.param("hu", "könyvek konyvek", marks=pytest.mark.long),
        ("cs", "městech mestech město"),
        ("ro", "școli şcoli școală"),
        pytest.param("el", "ανθρώπων ανθρωπων άνθρωπος", marks=pytest.mark.long),
        pytest.param("da", "købmænd kobmand koebmaend", marks=pytest.mark.long),
        ("it", "città citta"),
        pytest.param("lt", "žmonės zmones žmogus", marks=pytest.mark.long),
        ("fi", "lentokoneissa lentokone"),
        ("fi", "komentoikkunassakin komentoikkunaan komentoikkuna"),
        ("fi", "muutetun muutettujen muutettu"),
        ("fi", "ladattavissa ladattava"),
        ("fi", "tyypillisesti tyypillinen"),
        ("fi", "sanasta sana"),
        ("fi", "linuxissa linuxin linux"),
        (NONE, "café CAFE cafe\u0301 Café's"),
        (NONE, "finance ﬁnance ｆｉｎａｎｃｅ \U0001d41fi\U0001d427ance"),
        (NONE, "σοφος σοφός ΣΟΦΟΣ"),
        (NONE, "カガ ｶｶﾞ"),
        (NONE, "Łódź lodz"),
        (NONE, "rock'n'roll rock’n’roll rocknroll"),
        (NONE, "xyz x\u00adyz xy\u200dz"),
        (NONE, "שָׁלוֹם שלום"),
        (NONE, "O'Brien O’Brien O‘Brien Oʻbrien OʼBrien O′Brien O´Brien O`Brien OBrien"),
        ("fr", "l´opéra opéra"),
        (NONE, "Hawaiʻi Hawai'i hawaii"),
        (NONE, "Qurʾān Qur'an quran"),
        (NONE, 'צה"ל צה״ל'),
        (NONE, "m² M2"),
        (NONE, "km³. km3"),
        (NONE, "CO₂ CO2"),
        (NONE, "H₂O h2o"),
        (NONE, "SO₄²⁻ so4"),
        (NONE, "1ˢᵗ 1st"),
        (NONE, "١٢٣ ۱۲۳ १२३ 123"),
        (NONE, "٣٫١٤ 3.14"),
        (NONE, "الدَّرسَ الدرس الـدرس"),
        (NONE, "أحمد احمد ﺃﺣﻤﺪ"),
        (NONE, "کتابی كتابي"),
        ("ar", "الدَّرسَ الدرس درس"),
        ("ar", "الأوضح الاوضح أوضح اوضح"),
        ("fa", "کتاب‌ها كتابها کتاب"),
        ("fa", "برگه برگه‌ها برگه‌های برگه‌هایی"),
        ("ar", "ملف الملف والملف بملف للملف وللملف"),
        ("ru", "го\u0301рода городах"),
        ("hi", "लड़के लड़का"),
        (NONE, "도서관 도서관은 도서관이 도서관에서는 도서관까지의 도서관들로부터"),
        (NONE, "나라 나라를 나라로"),
        (NONE, "우리나라 우리나라는"),
        (NONE, "결과 결과를 결과에는"),
        (NONE, "책 책을 책에서"),
        ("en", "Linux Linux는 linux의"),
        (NONE, "臺灣圖書館裡 台湾図書館里 台湾图书馆裏"),
        (NONE, "葛城 葛\U000e0100城 葛\ufe00城"),
        (NONE, "錢鍾書著 钱锺书着 钱钟书著"),
        ("en", "衛國 衞国 卫國"),
    ],
)
def test_the_forms_of_a_word_are_one_term(language: str, same: str) -> None:
    assert len({tuple(words(nfc(word), language)) for word in same.split(" ")}) == 1


@pytest.mark.parametrize(
    ("language", "other"),
    [
        ("en", "opera opus"),
        ("en", "news new"),
        ("en", "bus bu"),
        ("de", "leicht leiche"),
        ("de", "seit sein"),
        ("fr", "important porter"),
        ("fr", "bord broder"),
        ("fr", "entre entrer"),
        ("es", "para parar"),
        ("es", "vida ver"),
        ("es", "público publicar"),
        ("fi", "tyylisivu tyyli"),
        ("fi", "ohjesivulla ohjeella"),
        ("fi", "jossa jo"),
        ("ru", "данные дать"),
        ("ru", "отмена отметить"),
        (NONE, "film films"),
        (NONE, "май маи"),  # й is a letter of its own
        (NONE, "がく かく"),
        (NONE, "10⁵ 105"),
        (NONE, "Java™ javatm"),
        (NONE, "Vivaldi² vivaldi2"),  # the mark of a note
        (NONE, "½ 12"),
        (NONE, "على علي"),
        (NONE, "국가 국"),  # 가 follows vowels
        (NONE, "회의 회 도로 도 길이 길"),
        (NONE, "c++ c c#"),
        (NONE, "髪 発 歴 暦 像 象"),
    ],
)
def test_other_words_have_other_terms(language: str, other: str) -> None:
    pieces = other.split(" ")
    assert len({tuple(words(word, language)) for word in pieces}) == len(pieces)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("getUserById now", "getuserbyid now\nget user by id"),
        ("see pg_stat_statements.max", "see pg_stat_statements.max\npg stat statement max"),
        ("sig.parameters.keys",
         "sig.parameters.keys\nsig parameter key\nsig.parameters\nparameters.keys"),
        ("object.__len__, sqlite3.Row (a.b_.Name)",
         "object __len__ sqlite3 row a.b_ name\nobject len\nsqlite row\nname\na.b_\nb_ name"),
        ("1.2.3 in 1995.In", "1.2.3 in 1995 in"),
        ("EarlyStoppingCallback", "earlystoppingcallback\nearly stop callback"),
        ("DataFrame of MacDonald", "dataframe of macdonald"),
        ("x_train, 3.14 U.S. e.g. USA's NATOs", "x_train 3.14 us e.g usa nato\ntrain"),
        ("in C++17, C# or c", "in c++ 17 c# or c"),
        ("run --dry-run -j 4", "run dry run j 4\n--dry-run\n-j"),
        ("$HOME, @app.route and .NET",
         "home app.route and net\n$home\napp route\n@app.route\n.net"),
        ("№5, № 5, No. 5", "no 5 no 5 no 5"),
        ("a `b` ab`cd `e`'s 5′ 10″ x′(t)", "a b abcd e s 5 10 x t"),
        ("ภาษาไทย ๑๒ ก", "ภ า ษ า ไ ท ย 12 ก"),
        ("ที่นี่ API", "ที่ นี่ api"),
        ("サーバーのﾃﾞｰﾀ_x", "サ ー バ ー の デ ー タ _x"),
        ("API서버에서 API를 서버3대 3D프린터", "api 서버 api 서버 3 대 3d 프린터"),
        ("❤️ ❤ 👍🏽 👍 Ðorđe", "❤ ❤ 👍 👍 dorde"),
        ("ភាសាខ្មែរ", "ភា សា ខ្ មែ រ"),
        ("a self\u2010employed man, self-employed", "a self employ man self employ\nselfemployed"),
        ("a-b a--b user@example.com", "a b a b user example.com\nexample com"),
        ("", ""),
    ],
)  # fmt: skip
def test_parts_and_symbols_are_behind_all_words(text: str, terms: str) -> None:
    assert indexed(text, "en") == terms


def test_two_capitalised_parts_are_parts_only_in_code() -> None:
    assert indexed("DataFrame", "en", kind="code") == "dataframe\ndata frame"
    assert is_code("src/frame.py")
    assert is_code("a/B.JAVA")
    assert not is_code("frame.md")
    assert not is_code("py")
    (word, *holes, data, _) = normal_forms("DataFrame", "en", kind="code")
    assert [hole.term for hole in holes] == [HOLE] * HOLE_COUNT
    assert (word[1:], data[1:]) == ((0, 9), (0, 9))


@pytest.mark.parametrize(
    ("text", "spellings"),
    [
        ("Films", [("film",)]),
        ("new films", [("new", "film")]),
        ("getUserById", [("getuserbyid",), ("get", "user", "by", "id")]),
        ("DataFrame", [("dataframe",), ("data", "frame")]),
        ("subprocess.Popen.communicate",
         [("subprocess.popen.communicate",), ("subprocess", "popen", "communicate"),
          ("popen.communicate",)]),
        ("python.object.__len__",
         [("python.object", "__len__"), ("python", "object", "len"), ("object", "__len__")]),
        ("the getUserById", [("the", "getuserbyid")]),
        ("--dry-run", [("--dry-run",)]),
        (" $HOME ", [("$home",)]),
        ("C++", [("c++",)]),
        ("lay-abbot", [("lie", "abbot")]),
        ("...", []),
    ],
)  # fmt: skip
def test_a_query_word_stands_for_the_whole_its_parts_or_a_dotted_ending(
    text: str, spellings: list[tuple[str, ...]]
) -> None:
    assert normal_spellings(text, "en") == tuple(spellings)


@pytest.mark.parametrize(
    ("language", "text", "spellings"),
    [
        ("de", "strasse", [("strass",), ("strasse",)]),
        ("de", "Straße", [("strasse",), ("strass",)]),
        ("de", "schon", [("schon",)]),  # a word of its own
        ("de", "lange strasse", [("lange", "strass"), ("lange", "strasse")]),
        ("de", " ".join(["strasse"] * 4), [("strass",) * 4]),  # of too many spellings
        ("fr", "eleves", [("elever",), ("eleve",)]),
        ("es", "canción", [("cancion",)]),
        ("en", "films", [("film",)]),
        ("en", "U.S.", [("us",), ("u.s",), ("u", "s")]),
        ("en", "u.s.", [("u.s",), ("us",)]),
        ("en", "JK", [("jk",)]),  # before a name, its letters may have blanks between
        ("en", "JK Rowling", [("jk", "rowling"), ("j.k", "rowling"), ("j", "k", "rowling")]),
        ("en", "J. K. Rowling", [("j", "k", "rowling"), ("j.k", "rowling"), ("jk", "rowling")]),
        (
            "en",
            "U.S. Army",
            [("us", "army"), ("u.s", "army"), ("u", "s", "army"), ("we", "army")],
        ),
        ("en", "I.T.", [("i.t",), ("i", "t")]),
        ("en", "x.y.z", [("x.y.z",), ("y.z",), ("xyz",)]),
        ("none", "U.S.", [("u.s",), ("u", "s")]),
        (
            "en",
            "US Army",
            [("we", "army"), ("u.s", "army"), ("u", "s", "army"), ("us", "army")],
        ),
    ],
)
def test_a_query_word_stands_for_all_that_are_typed_like_it(
    language: str, text: str, spellings: list[tuple[str, ...]]
) -> None:
    assert normal_spellings(text, language) == tuple(spellings)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The U.S. Army", "the us army"),
        ("U.S.-based P.O.W.s of WWII", "us base p.o.w.s of wwii"),
        ("tell us of u.s. and US", "tell we of u.s and we"),
        ("U.S.C., USC", "usc usc"),
        ("J.K., J. K., JK", "jk j k jk"),
        ("I.T. of W.H.O.", "i.t of w.h.o"),  # and not the pronouns
        ("С.С.С.Р.", "ссср"),
        ("e.g. at 5 p.m., 1.5 A.5", "e.g at 5 p.m 1.5 a 5"),
    ],
)
def test_capitals_with_dots_are_their_letters(text: str, terms: str) -> None:
    assert words(text) == terms.split()
    assert "us" not in words("the U.S.", NONE)  # it would be the pronoun


@given(st.from_regex(r"\A[A-Za-z0-9 .,_+'é-]{1,20}\Z"))
def test_a_phrase_stands_for_the_terms_of_its_words_in_order(text: str) -> None:
    words = [term for term in normal_terms(text, "en") if term]
    tokens = analysis.tokens(text)
    count = len(tokens)
    whole = text[tokens[0].start : tokens[-1].end] if tokens else ""
    is_name = re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+", whole)  # such as sqlite3.Row
    if count > 1 and not is_name and not text.strip().startswith(("-", "@", "$")):
        assert normal_spellings(text, "en")[0] == tuple(words[:count])


@given(TEXTS)
@example("A²0")
@example("カカ1")
def test_every_word_has_one_term_at_its_place(text: str) -> None:
    text = (nfc(text) if text.isprintable() else text).replace("№", " ")  # which is a word
    text = KATAKANA.sub(lambda run: " ".join(run[0]), text)  # whose characters are words
    tokens = analysis.tokens(_plain_signs(text))
    forms = normal_forms(text, NONE)
    terms = [form.term for form in forms]
    assert terms == normal_terms(text, NONE)
    assert [form.start for form in forms[: len(tokens)]] == [token.start for token in tokens]
    assert HOLE not in terms[: len(tokens)]
    assert all(0 <= form.start <= form.end <= len(text) for form in forms)
    assert not any(character.isspace() for term in terms for character in term)
    assert all(len(term.encode("utf-16-le", "surrogatepass")) <= 510 for term in terms)


@pytest.mark.parametrize("language", ["ar", "fa"])
def test_all_spellings_of_an_arabic_word_have_the_form_of_its_lemma(language: str) -> None:
    lemmas = dictionaries.lemmas(language)
    drawn = Random(1678).sample([word for word in lemmas if word.isalpha()], 2000)
    bare = str.maketrans("أإآيك", "ااایک")
    others = 0
    for word in drawn:
        typed = "".join(f"{letter}\u064e\u0640" for letter in word.translate(bare))
        assert (
            words(word, language) == words(typed, language) == words(word.translate(bare), language)
        )
        others += words(word, language) != words(lemmas[word], language)
    assert others < 40  # words that the spelling alone tells apart


@given(TEXTS)
def test_case_never_matters_to_a_word_without_parts(text: str) -> None:
    low = analysis.fold(text)
    if not set("_.@$#+-") & set(text) and analysis.fold(text.upper()) == low:
        assert words(text.upper(), NONE) == words(low, NONE)


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from(["py", "md", "txt"]))
def test_the_forms_of_a_chunk_are_those_of_its_texts(pieces: list[str], ending: str) -> None:
    ends, content = [], ""
    for piece in pieces:
        content += piece
        ends.append(len(content))
    doc_id = f"a.{ending}"
    kind = kind_of(doc_id)
    chunk = Chunk("a.1", doc_id, "getUserById", content, 1, 1, 0, tuple(ends), {})
    forms = forms_of_chunk(chunk, NONE)
    assert forms.title == indexed(chunk.title, NONE)
    assert forms.sentences == [indexed(text, NONE, kind=kind) for text in chunk.sentences()]
    whole = indexed(content, NONE, kind=kind).split("\n")
    made = forms.content.split("\n")
    assert made[0] == whole[0]
    assert sorted(made[1:]) == sorted(whole[1:])


@given(st.text(alphabet='aB1 _.-+#@$\n\u3000é\\*&;<>/~^{}:"', max_size=40), st.sampled_from(KINDS))
def test_a_text_is_read_as_its_pieces_between_white_space_are(text: str, kind: TextKind) -> None:
    pieces = [normal_forms(piece, "en", kind=kind) for piece in split(text, kind)]
    whole = [form.term for form in normal_forms(text, "en", kind=kind) if form.term]
    assert sorted(whole) == sorted(form.term for piece in pieces for form in piece if form.term)


def test_long_pieces_without_white_space_are_not_kept() -> None:
    text = "北京" * 100
    assert indexed(text, NONE) == " ".join(text)
    assert text not in _pieces(NONE, False, False)


def test_a_beginning_is_folded_and_has_no_lemma() -> None:
    assert [folded(word) for word in ("Café", "O’Nei", "films", "ＶＩＶ", "'")] == [
        "cafe", "onei", "films", "viv", "'"
    ]  # fmt: skip


def test_the_steps_name_language_and_dictionary() -> None:
    assert len(languages()) > 40
    assert steps("en")[8].startswith("lemmas of en (simplemma ")
    assert not any("lemmas" in step for step in steps(NONE))


@given(st.text(alphabet="ab C#+.-_\n'é′²№", max_size=40))
def test_written_words_stand_before_their_forms(text: str) -> None:
    both = indexed(text, "en", written=True)
    words, *behind = both.split("\n")
    pairs = [word.partition("\t") for word in words.split(" ") if word]
    assert [word for word, _, _ in pairs if word] == analysis.terms(text)
    forms = [form if tab else word for word, tab, form in pairs]
    assert "\n".join([" ".join(filter(None, forms)), *behind]) == indexed(text, "en")


def test_a_dotted_name_is_searched_by_few_of_its_endings(monkeypatch: pytest.MonkeyPatch) -> None:
    name = ".".join(f"part_{number}x" for number in range(300))
    read: list[str] = []
    terms = analysis.terms

    def noted(text: str) -> list[str]:
        read.append(text)
        return terms(text)

    monkeypatch.setattr(analysis, "terms", noted)
    assert ("part_298x.part_299x",) in normal_spellings(name, "en")
    assert sum(map(len, read)) < 3 * len(name)
