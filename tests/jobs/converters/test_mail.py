"""Mail: headers, bodies and attachments; mailboxes of many messages."""

import quopri
from base64 import b64encode
from email.message import EmailMessage
from pathlib import Path

import pytest

from arag_search.errors import SourceError
from index_jobs.sources.converters import mail
from index_jobs.sources.converters.registry import ConvertedDocument
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from tests.support.converted import document_of, documents_of, entries_of, refusal_of, written


def message(**headers: str) -> EmailMessage:
    new = EmailMessage()
    usual = {"From": "Jürgen <j@example.org>", "To": "a@example.org", "Subject": "Opern"}
    for name, value in {**usual, **headers}.items():
        new[name.replace("_", "-")] = value
    return new


def test_a_message_has_its_subject_its_people_and_its_text(tmp_path: Path) -> None:
    new = message(Date="Tue, 02 Jan 2024 10:00:00 +0200", Message_ID="<7@example.org>")
    new.set_content("Grüße aus Venedig.  \n\nJ.\n")
    new.add_alternative("<p>no</p>", subtype="html")
    new.add_attachment(b"\0\1", maintype="image", subtype="png", filename="Bühne.png")
    read = document_of(written(tmp_path / "a.eml", bytes(new)))
    assert read.title == "Opern"
    assert read.text == (
        "From: Jürgen <j@example.org>\nTo: a@example.org\nDate: Tue, 02 Jan 2024 10:00:00 +0200\n"
        "Attachment: Bühne.png\n\nGrüße aus Venedig.\n\nJ."
    )
    assert read.metadata == {
        "from": "Jürgen <j@example.org>",
        "to": "a@example.org",
        "subject": "Opern",
        "message_id": "7@example.org",
        "date": "2024-01-02T10:00:00+02:00",
    }


def test_a_message_in_html_alone_is_read_as_a_page(tmp_path: Path) -> None:
    new = message()
    new.set_content("<style>no</style><p>One &amp; two<p>Three", subtype="html")
    read = document_of(written(tmp_path / "a.eml", bytes(new)))
    assert read.text.endswith("\n\nOne & two\n\nThree")


@pytest.mark.parametrize("charset", ["nonsense", "utf-8", "us-ascii"])
def test_a_body_in_another_encoding_than_declared_is_read(tmp_path: Path, charset: str) -> None:
    head = f"From: a@b.c\nContent-Type: text/plain; charset={charset}\n\n".encode()
    body = "Schöne Grüße aus Köln, über alle Berge.".encode("cp1252")
    read = document_of(written(tmp_path / "a.eml", head + body))
    assert read.text.endswith("Schöne Grüße aus Köln, über alle Berge.")


@pytest.mark.parametrize(
    "head",
    [
        "From: \nSubject: x",
        "Date: yesterday\nSubject: =?utf-8?q?=ff=?=",
        "From: <<<>>> (((\nTo: @,;:\nDate: 99 Foo 0000\nMessage-ID: <[\nSubject: \udcff",
        "Subject: x\nContent-Type: multipart/mixed; boundary=",
        'Subject: x\nContent-Type: text/plain; charset*="',
        "Subject: x\nContent-Transfer-Encoding: base64\nContent-Type: text/plain",
    ],
)
def test_malformed_headers_do_no_harm(tmp_path: Path, head: str) -> None:
    data = f"{head}\n\nBody.".encode("utf-8", "surrogateescape")
    read = document_of(written(tmp_path / "a.eml", data))
    assert (read.title + read.text).encode()


@pytest.mark.parametrize("data", [b"", b"just text", b"\0\1\2", b"\n\nbody"])
def test_what_has_no_headers_is_no_message(tmp_path: Path, data: bytes) -> None:
    assert "not a message" in refusal_of(written(tmp_path / "a.eml", data)).what


def test_ten_thousand_nested_parts_are_read_or_refused(tmp_path: Path) -> None:
    lines = (f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(10_000))
    path = written(tmp_path / "a.eml", "Subject: deep\n" + "".join(lines))
    try:
        assert document_of(path).title == "deep"
    except SourceError as error:
        assert "message" in error.what


def test_every_message_of_a_mailbox_is_a_document(tmp_path: Path) -> None:
    separator = "From a@example.org Tue Jan  2 10:00:00 2024\n"
    bodies = ("One.\n\nFrom here on, text.\n>From a quote\n>>From two", "Two.", "")
    data = "\n\n".join(f"{separator}Subject: {n}\n\n{body}" for n, body in enumerate(bodies))
    documents = documents_of(written(tmp_path / "a.mbox", data + "\n"))
    assert [document.suffix for document in documents] == ["1", "2", "3"]
    assert [document.title for document in documents] == ["0", "1", "2"]
    assert documents[0].text == "One.\n\nFrom here on, text.\nFrom a quote\n>From two"


def test_a_bad_message_of_a_mailbox_is_an_error_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MAX_MESSAGE_BYTES", 1_000)
    separator = "From a@example.org Tue Jan  2 10:00:00 2024\n"
    data = (
        f"{separator}Subject: a\n\nx\n\n{separator}no headers\n\n"
        f"{separator}Subject: b\n\n{'long ' * 1_000}\n\n{separator}Subject: c\n\ny\n"
    )
    entries = entries_of(written(tmp_path / "a.mbox", data))
    assert [isinstance(entry, ConvertedDocument) for entry in entries] == [True, False, False, True]
    error = entries[2]
    assert isinstance(error, SourceError)
    assert error.where == "a.mbox, message 3"
    last = entries[3]
    assert isinstance(last, ConvertedDocument)
    assert (last.suffix, last.title) == ("4", "c")


def test_a_file_that_begins_otherwise_is_no_mailbox(tmp_path: Path) -> None:
    assert "mailbox" in refusal_of(written(tmp_path / "a.mbox", "Subject: x\n\ny\n")).what
    assert documents_of(written(tmp_path / "b.mbox", "")) == []


HEAD = "From: a@b.c\nSubject: s\nMIME-Version: 1.0\n"
PLAIN = "Content-Type: text/plain; charset=utf-8\n\n"
HTML = "Content-Type: text/html; charset=utf-8\n\n"


def multipart(kind: str, *parts: str, mark: str = "xx") -> str:
    body = "".join(f"--{mark}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="{mark}"\n\n{body}--{mark}--\n'


PICTURE = "Content-Type: image/png\nContent-Transfer-Encoding: base64\n\nAAAA"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (multipart("alternative", PLAIN, HTML + "<p>The real text."), "The real text."),
        (multipart(
             "alternative",
             PLAIN + "Use a client that shows HTML.",
             HTML + "<p>All of the long news of the week are here to be read by you today.",
         ),
         "All of the long news of the week are here to be read by you today."),
        (multipart("alternative", PLAIN + "One two.", HTML + "<p>One two."), "One two."),
        (multipart("mixed", PLAIN + "Before.", PICTURE, PLAIN + "After."), "Before.\n\nAfter."),
        (multipart("mixed", HTML + "<p>Body.", PLAIN + "-- \nThe list footer."),
         "Body.\n\n--\nThe list footer."),
        (multipart(
             "mixed",
             PLAIN + "See below.",
             "Content-Type: message/rfc822\n\nFrom: x@y.z\nSubject: Inner\n\nInside.",
         ),
         "See below.\n\nFrom: x@y.z\nSubject: Inner\n\nInside."),
        (multipart(
             "signed",
             multipart("related", HTML + "<p>Signed.", PICTURE, mark="yy"),
             "Content-Type: application/pgp-signature\n\n-----",
         ),
         "Signed."),
    ],
)  # fmt: skip
def test_all_that_a_mail_program_shows_is_read_in_order(
    tmp_path: Path, parts: str, text: str
) -> None:
    read = document_of(written(tmp_path / "a.eml", HEAD + parts))
    assert read.text == f"From: a@b.c\n\n{text}"


def test_messages_without_a_text_are_counted(tmp_path: Path) -> None:
    read = document_of(written(tmp_path / "a.eml", HEAD + PICTURE))
    assert read.unread == {"messages without a text": 1}
    calendar = multipart("mixed", PLAIN + "Come.", "Content-Type: text/calendar\n\nBEGIN:X")
    read = document_of(written(tmp_path / "b.eml", HEAD + calendar))
    assert read.unread == {"parts of the type text/calendar": 1}


@pytest.mark.parametrize("charset", ["utf-8", "cp1252"])
def test_headers_with_raw_bytes_and_a_byte_order_mark_are_read(
    tmp_path: Path, charset: str
) -> None:
    text = "Subject: Grüße aus Köln\nFrom: Jürgen <j@b.c>\n"
    head = f"{text}Content-Type: text/plain; charset={charset}\n\nä".encode(charset)
    read = document_of(written(tmp_path / "a.eml", b"\xef\xbb\xbf" + head))
    assert (read.title, read.text) == ("Grüße aus Köln", "From: Jürgen <j@b.c>\n\nä")


def test_mailboxes_of_thunderbird_and_lines_that_look_like_separators_are_read(
    tmp_path: Path,
) -> None:
    data = (
        "From \nSubject: a\n\nLeave.\n\nFrom Berlin at 12:30 on 5 May 2026\nby train.\n\n"
        "From - Tue Jan  2 10:00:00 2024\nX-Mozilla-Status: 0001\nSubject: b\n\ny\n"
    )
    documents = documents_of(written(tmp_path / "a.mbox", data))
    assert [document.title for document in documents] == ["a", "b"]
    assert documents[0].text == "Leave.\n\nFrom Berlin at 12:30 on 5 May 2026\nby train."


HEADERS = "Received: by x;\n\tTue, 02 Jan 2024 10:00:00 +0200\nFrom: a@b.c\nSubject: Pumps\n"


@pytest.mark.parametrize(
    "name",
    [
        *("INBOX", "7", "saved.txt", "b.emlx", "1700000000.M20046P2137.host:2,S"),
        "1204680122.27c448156b74ca36e0bca82da6ba4fcc.host,S=9:2,",
    ],
)
def test_mail_is_recognised_by_its_beginning(tmp_path: Path, name: str) -> None:
    data = f"{HEADERS}\nThey run.\n"
    apple = f"{len(data)}      \n{data}<?xml?><plist/>"
    read = document_of(written(tmp_path / name, apple if name.endswith("x") else data))
    assert (read.title, read.text) == ("Pumps", "From: a@b.c\n\nThey run.")


@pytest.mark.parametrize(
    "separator", ["From - Tue Jan  2 10:00:00 2024\nX-Mozilla-Status: 1", "From ", "From a@b 1"]
)
@pytest.mark.parametrize("name", ["Inbox", "box.txt"])
def test_a_mailbox_is_recognised_by_its_beginning(
    tmp_path: Path, name: str, separator: str
) -> None:
    path = written(tmp_path / name, f"{separator}\n{HEADERS}\nx\n\n{separator}\n{HEADERS}\ny\n")
    assert [(read.suffix, read.text[-1]) for read in documents_of(path)] == [("1", "x"), ("2", "y")]
    source = open_source(str(path), None, Fields(), MetadataReader({}))
    (part,) = source.parts(0, 0, 1)
    assert len(list(part.source.documents())) == 2


@pytest.mark.parametrize(
    "text",
    [
        "From Berlin at noon\nNote: we go home.\n\nSubject: x",
        "To: all\nFrom: Ann\nDate: 5 May\nRoom: 7\n\nMemo.",
        f"# Notes\n{HEADERS}\nx",
        "From: Berlin\nTo: Paris\nChange: Cologne\n\nA train.",
        "Date: 2024-01-02 10:00\nA line without a colon",
    ],
)
def test_text_that_begins_like_mail_stays_text(tmp_path: Path, text: str) -> None:
    assert document_of(written(tmp_path / "a.txt", text)).text == text


@pytest.mark.parametrize(
    ("delsp", "lines", "read"),
    [
        ("; DelSp=Yes", ["Donau ", "dampf ", "schiff", " From here", " >x"],
         "Donaudampfschiff\nFrom here\n>x"),
        ("", ["We go ", "home.", "", "> You ", ">> I ", "> said", "-- ", "J."],
         "We go home.\n\n> You\n>> I\n> said\n--\nJ."),
        ("; delsp=no", ["a ", "b ", "-- ", "J. "], "a b\n--\nJ."),
    ],
)  # fmt: skip
def test_flowed_paragraphs_are_joined(
    tmp_path: Path, delsp: str, lines: list[str], read: str
) -> None:
    kind = f"Content-Type: text/plain; format=flowed{delsp}\n\n"
    path = written(tmp_path / "a.eml", HEADERS + kind + "\n".join(lines))
    assert document_of(path).text == f"From: a@b.c\n\n{read}"


PAGE = "<title>Über Köln</title><h1>Dom</h1><p>Groß = schön.<dl><dt>-a<dd>b</dl>"
QUOTED = quopri.encodestring(PAGE.encode()).decode()
CP1252 = b64encode(PAGE.encode("cp1252")).decode()
META = quopri.encodestring(b"<meta charset=cp1252>" + PAGE.encode("cp1252")).decode()


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        # Chrome: no charset, a frame after the page, styles by cid:
        ('type="text/html"', [f"/html\nContent-Transfer-Encoding: quoted-printable\n\n{QUOTED}"]),
        # Internet Explorer: base64, the charset in the part
        ("", [f'/html; charset="windows-1252"\nContent-Transfer-Encoding: base64\n\n{CP1252}']),
        # Word and others: the charset in the page alone
        ("", [f"/html\nContent-Transfer-Encoding: quoted-printable\n\n{META}"]),
        # Opera and Firefox: as it is, behind a part of style
        ("", ["/css\n\np {}", f"/html; charset=utf-8\n\n{PAGE}"]),
        # wkhtml and scripts: the part that is meant is not the first one
        (
            'start="<b@x>"',
            ["/html\nContent-ID: <a@x>\n\nno", f"/html\nContent-ID: <b@x>\n\n{PAGE}"],
        ),
    ],
)
def test_a_web_archive_is_the_page_in_it(tmp_path: Path, kind: str, parts: list[str]) -> None:
    head = f"From: <Saved>\nMIME-Version: 1.0\nContent-Type: multipart/related; {kind}; boundary=-X"
    body = "".join(f"\n---X\nContent-Type: text{part}\n" for part in [*parts, "/html\n\nA frame"])
    data = f"\n{head}\n\n{body}\n---X--\n".replace("\n", "\r\n")
    page = document_of(written(tmp_path / "a.mhtml", data))
    assert page.title == "Über Köln"
    assert page.text == "# Dom\n\nGroß = schön.\n\n-a\nb"
    assert [unit.name for unit in page.outline] == ["Dom", "-a"]


def test_a_web_archive_without_a_page_is_refused(tmp_path: Path) -> None:
    assert "a web archive" in refusal_of(written(tmp_path / "a.mht", b"\xff\0")).what
