"""Texts in old encodings, short and long, whole and damaged."""

import unicodedata
from io import BytesIO
from pathlib import Path

import chardet
import pytest

from arag_search.errors import SourceError
from index_jobs.sources.converters.html import decoded_markup
from index_jobs.sources.encodings import Decoded, decoded, stream_encoding
from tests.support.converted import document_of, refusal_of, written
from tests.support.examples import some_of

RUSSIAN = "Сегодня утром пошёл снег. Дети взяли санки и побежали к реке, а старики остались дома."
POLISH = "Wczoraj wieczorem padał śnieg. Dzieci wzięły sanki i pobiegły nad rzekę, żeby się bawić."
GERMAN = "Heute früh fiel Schnee. Die Kinder liefen über die Brücke, und die Größeren trugen Körbe."
FRENCH = "Les élèves ont traversé la forêt, très fiers et déjà gelés. Ce matin la neige est tombée."
GREEK = "Σήμερα το πρωί έπεσε χιόνι. Τα παιδιά πήραν τα έλκηθρα και έτρεξαν προς το ποτάμι."
HEBREW = "הבוקר ירד שלג. הילדים לקחו את המזחלות ורצו אל הנהר, והזקנים נשארו בבית ליד האש."
ARABIC = "نزل الثلج هذا الصباح. أخذ الأطفال الزلاجات وركضوا نحو النهر وبقي الشيوخ في البيت."
TURKISH = "Bu sabah kar yağdı. Çocuklar kızaklarını alıp ırmağa koştu, yaşlılar ise evde kaldı."
LITHUANIAN = "Vaikai pasiėmė rogutes ir nubėgo prie upės, o seneliai liko namuose. Šį rytą pasnigo."
UKRAINIAN = "Сьогодні вранці випав сніг. Діти взяли санчата й побігли до річки, а літні люди їхали."
VIETNAMESE = "Sáng nay trời lạnh. Bọn trẻ chạy ra bờ sông, còn người già ở nhà bên bếp lửa."
THAI = "เช้านี้หิมะตก เด็กๆ วิ่งไปที่แม่น้ำ ส่วนคนแก่อยู่บ้านใกล้เตาไฟ"
SIMPLIFIED = "今天早上下了雪。孩子们拿着雪橇跑到河边，老人们留在家里烤火，等他们回来吃饭。"
TRADITIONAL = "今天早上下了雪。孩子們拿著雪橇跑到河邊，老人們留在家裡烤火，等他們回來吃飯。"
JAPANESE = "今朝は雪が降りました。子どもたちはそりを持って川へ走り、年寄りは家で火にあたりました。"
KOREAN = "오늘 아침에 눈이 내렸다. 아이들은 썰매를 들고 강가로 달려갔고 노인들은 집에 남았다."

TEXTS = [
    *(("cp1250", POLISH), ("iso8859-2", POLISH), ("cp852", POLISH)),
    *((name, RUSSIAN) for name in ("cp1251", "koi8-r", "iso8859-5", "cp866", "mac-cyrillic")),
    *((name, GERMAN) for name in ("cp1252", "iso8859-1", "cp437", "cp850", "mac-roman")),
    *((name, FRENCH) for name in ("cp1252", "iso8859-15")),
    *(("cp1253", GREEK), ("iso8859-7", GREEK), ("cp1254", TURKISH), ("iso8859-9", TURKISH)),
    *(("cp1255", HEBREW), ("iso8859-8", HEBREW), ("cp1256", ARABIC), ("iso8859-6", ARABIC)),
    *(("cp1257", LITHUANIAN), ("iso8859-13", LITHUANIAN), ("koi8-u", UKRAINIAN)),
    *(("cp1258", VIETNAMESE), ("cp874", THAI), ("gb18030", SIMPLIFIED), ("gbk", SIMPLIFIED)),
    *(("big5", TRADITIONAL), ("euc-jp", JAPANESE), ("shift_jis", JAPANESE)),
    *(("iso2022_jp", JAPANESE), ("euc-kr", KOREAN), ("cp949", KOREAN)),
]
"""A text that we wrote for each encoding."""

PAIRS = ("gb18030", "gbk", "big5", "euc-jp", "euc-kr", "cp949", "shift_jis")
TONES = "\u0300\u0301\u0303\u0309\u0323"


def typed(text: str, encoding: str) -> str:
    """Return the text as the encoding has it: the one for Vietnamese has the tones apart."""
    if encoding != "cp1258":
        return text
    letters = [unicodedata.normalize("NFD", letter) for letter in text]
    apart = ["".join(sorted(letter, key=lambda mark: mark in TONES)) for letter in letters]
    return "".join(
        unicodedata.normalize("NFC", letter.rstrip(TONES)) + letter[len(letter.rstrip(TONES)) :]
        for letter in apart
    )


@pytest.mark.parametrize("length", some_of([40, 400, 25, 80, 2_000], 2))
@pytest.mark.parametrize(("encoding", "text"), TEXTS)
def test_a_text_in_an_old_encoding_is_read(encoding: str, text: str, length: int) -> None:
    text = typed(" ".join([text] * (length // 70 + 1))[:length].strip(), encoding)
    data = text.encode(encoding)
    assert decoded(data, "a.txt") == Decoded(text)
    if encoding != "iso2022_jp":
        assert data.decode(stream_encoding(BytesIO(data), "a.txt")) == text


@pytest.mark.parametrize("encoding", PAIRS)
def test_a_damaged_text_in_an_old_encoding_loses_one_character(encoding: str) -> None:
    text = dict(TEXTS)[encoding].rstrip(".")
    data = text.encode(encoding)
    assert decoded(data[:-1], "a.txt") == Decoded(text[:-1] + "\ufffd", 1)
    if encoding != "shift_jis":  # in which Windows has a character of private use for the byte
        half = len(text) // 2
        damaged = text[:half].encode(encoding) + b"\xff" + text[half:].encode(encoding)
        assert decoded(damaged, "a.txt") == Decoded(f"{text[:half]}\ufffd{text[half:]}", 1)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp949", "한국어.txt"),
        ("euc-kr", "안녕하세요"),
        ("cp949", "뷁 똠방각하"),
        ("gb18030", "// 读取文件，返回长度\nint size(void);\n// 出错时返回负数\n"),
        ("gb18030", "你好，世界"),
        ("shift_jis", "品目,数量,単価\nりんご,3,120\n梨,5,200\n"),
        ("shift_jis", "パスワードをリセットしてください"),
        ("euc-jp", "パスワードをリセットしてください"),
        ("euc-jp", "日本語のテスト"),
        ("cp1250", "Śnieg leży na łące. Źródło jest głęboko."),
        ("cp1253", "Άνοιξη στην Αθήνα"),
        ("cp1255", "שלום עולם"),
        ("cp1256", "مرحبا بالعالم"),
        ("cp874", "สวัสดีครับ"),
        ("koi8-r", "ещё"),
        ("koi8-u", "Привіт, світе"),
        ("cp866", "Привет, мир"),
        ("cp437", "Müller"),
        ("mac-roman", "déjà vu à l’école"),
        ("cp850", "São Paulo é uma cidade"),
        ("cp1252", "Überprüfung der Größe"),
        ("cp1252", "informações"),
        ("cp1252", "ça me va"),
        ("cp1252", "mä en tiedä mitään siitä"),
        ("cp1252", "Charlotte Brontë…” was naïve"),
        ("cp1252", "Viel Spaß… für alle"),
        ("cp1252", "20 °C"),
        ("cp1252", "\x1b[32mGrün\x1b[0m und \x1b[31mschön\x1b[0m"),
        ("cp1252", "MZ: Größe"),
        ("cp1252", "BMörder"),
    ],
)
def test_what_others_took_for_another_script_is_read(encoding: str, text: str) -> None:
    assert decoded(text.encode(encoding), "a.txt") == Decoded(text)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Schöne Grüße aus Köln.\n".encode() + b"\xff", "Schöne Grüße aus Köln.\n\ufffd"),
        ("Grü".encode() + b"\xff" + b"e", "Grü\ufffde"),
        ("日志：操作完成".encode()[:-1], "日志：操作完\ufffd"),
        ("It’s a caf".encode() + b"\xe9", "It’s a caf\ufffd"),
        ("⅓ cup ".encode() + b"\xe9", "⅓ cup \ufffd"),
        ("și ".encode() + b"\xff", "și \ufffd"),
        (("x" * 300 + "ü").encode() * 2 + b"\xe9 \xff", ("x" * 300 + "ü") * 2 + "\ufffd \ufffd"),
        ("日志。".encode() * 20 + b"\xff \xff \xff", "日志。" * 20 + "\ufffd \ufffd \ufffd"),
        (b"\xef\xbb\xbfplain \xff", "plain \ufffd"),
    ],
)
def test_damaged_utf_8_loses_its_damaged_characters(data: bytes, text: str) -> None:
    assert decoded(data, "a.txt") == Decoded(text, text.count("\ufffd"))
    if not data.startswith(b"\xef\xbb\xbf"):
        assert stream_encoding(BytesIO(data), "a.txt") == "utf-8"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "A note with one accent: café"),
        ("cp1252", "Ende der Straße… und später"),
        ("koi8-r", "моё всё"),
        ("koi8-u", "ніж"),
        ("cp1252", "An accent in English. " * 500 + "café, naïve"),
        ("gb18030", "int size(void);  // length\n" * 400 + "// 读取文件，返回长度\n"),
        ("euc-jp", "int size(void);  // length\n" * 400 + "// 雪のはなの話です\n"),
    ],
)
def test_bytes_that_are_utf_8_by_accident_do_not_make_it_utf_8(encoding: str, text: str) -> None:
    assert decoded(text.encode(encoding), "a.txt") == Decoded(text)


def test_a_count_of_damaged_characters_is_that_of_the_file_alone(tmp_path: Path) -> None:
    text = "A replaced \ufffd and a café: "
    path = written(tmp_path / "a.md", text.encode() + b"\xff")
    document = document_of(path)
    assert document.text == text + "\ufffd"
    assert document.unread == {"damaged characters": 1}
    assert document_of(written(tmp_path / "b.md", text)).unread == {}


@pytest.mark.parametrize("name", ["a.txt", "a.rst", "a.log", "a.html", "a.eml"])
def test_damaged_characters_of_every_type_are_counted(tmp_path: Path, name: str) -> None:
    head = "From: a@b.c\nContent-Type: text/plain; charset=utf-8\n\n" if "eml" in name else ""
    path = written(tmp_path / name, (head + "Größe und Süße ").encode() + b"\xff")
    document = document_of(path)
    assert "Größe und Süße" in document.text
    assert document.unread == {"damaged characters": 1}


def test_a_declared_encoding_may_have_a_damaged_character() -> None:
    page = b"<meta charset=shift_jis>" + (JAPANESE * 3).encode("shift_jis") + b"\x81"
    read = decoded_markup(page, "a.html")
    assert read.damaged == 1
    assert JAPANESE * 3 in read.text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_much_damage_is_refused(tmp_path: Path, encoding: str) -> None:
    assert decoded("Größe".encode(encoding)[:-1], "a.txt") == Decoded("Größ\ufffd", 1)
    lone = "a\ud800b\ud800c".encode(encoding, "surrogatepass")
    refused = refusal_of(written(tmp_path / "a.txt", lone))
    assert refused.what == f"The file is damaged {encoding.upper()}."
    with pytest.raises(SourceError, match="not recognised"):
        decoded(bytes(range(1, 256)) * 3, "a.txt")


def test_the_work_of_a_guess_does_not_grow_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    guessed: list[int] = []
    detect_all = chardet.detect_all

    def counting(data: bytes, **options: object) -> object:
        guessed.append(len(data))
        return detect_all(data, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(chardet, "detect_all", counting)
    data = (RUSSIAN + "\n").encode("cp1251") * 20_000
    assert decoded(data, "a.txt").text.startswith(RUSSIAN)
    assert sum(guessed) <= 3 << 16
    assert decoded(JAPANESE.encode("shift_jis") * 4_000, "a.txt").text == JAPANESE * 4_000
