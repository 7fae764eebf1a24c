"""Small odd files as people have them, with the text that a reader sees beside each: NAME.txt has
title and text of its documents. ``python -m tests.support.odd_files`` writes all of them.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tests.support.converted import pdf_bytes

FOLDER = Path(__file__).parents[1] / "jobs" / "converters" / "odd_files"

_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = "application/vnd.openxmlformats-officedocument"


def _zipped(members: dict[str, str]) -> bytes:
    """Return an archive, which is the same on every day."""
    data = BytesIO()
    with ZipFile(data, "w") as file:
        for name, content in members.items():
            info = ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = ZIP_DEFLATED
            file.writestr(info, content)
    return data.getvalue()


def _office(main: str, kind: str, members: dict[str, str], relations: str = "") -> bytes:
    """Return a file of Office whose main part is ``main``."""
    folder, _, name = main.rpartition("/")
    kinds = {main: f"{kind}.main", "xl/sharedStrings.xml": "spreadsheetml.sharedStrings",
             "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet"}  # fmt: skip
    types = "".join(
        f'<Override PartName="/{part}" ContentType="{_TYPES}.{kinds[part]}+xml"/>'
        for part in members
    )
    return _zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            f"{types}</Types>",
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{_OFFICE}/officeDocument" Target="{main}"/></Relationships>',
            f"{folder}/_rels/{name}.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
            f"{relations}</Relationships>",
            **members,
        }
    )


def _word(body: str) -> bytes:
    document = (
        f'<w:document {_WORD} xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/'
        'wordprocessingDrawing" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/'
        '2006" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:m="http://schemas.openxmlformats.org/'
        'officeDocument/2006/math" xmlns:wps="http://schemas.microsoft.com/office/word/2010/'
        f'wordprocessingShape"><w:body>{body}</w:body></w:document>'
    )
    return _office(
        "word/document.xml", "wordprocessingml.document", {"word/document.xml": document}
    )


def _sheet(rows: str, strings: str = "") -> bytes:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return _office(
        "xl/workbook.xml",
        "spreadsheetml.sheet",
        {
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{_OFFICE}"><sheets>'
            '<sheet name="Stock" sheetId="1" r:id="s1"/></sheets></workbook>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData>'
            "</worksheet>",
            "xl/sharedStrings.xml": f'<sst xmlns="{main}">{strings}</sst>',
        },
        f'<Relationship Id="s1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="s2" Type="{_OFFICE}/sharedStrings" Target="sharedStrings.xml"/>',
    )


def _paragraph(runs: str) -> str:
    return f"<w:p>{runs}</w:p>"


def _run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


_MAIL = "Subject: Minutes\nFrom: a@b.c\nMIME-Version: 1.0\n"

FILES: dict[str, tuple[bytes, str]] = {
    # Encodings
    "windows-31j.html": (
        "<meta charset=windows-31j><title>会社</title><p>①㈱山田".encode("cp932"),
        "会社\n\n①㈱山田",
    ),
    "shift_jis.html": (
        "<meta charset=shift_jis><p>髙橋さんは①番です".encode("cp932"),
        "髙橋さんは①番です",
    ),
    "gb2312.html": (
        '<meta http-equiv=content-type content="text/html; charset=gb2312"><p>朱镕基'.encode("gbk"),
        "朱镕基",
    ),
    "hebrew.html": (
        "<meta charset=iso-8859-8-i><p>שלום עולם".encode("iso-8859-8"),
        "שלום עולם",
    ),
    "thai.html": (
        "<meta charset=windows-874><p>สวัสดี “ครับ”".encode("cp874"),
        "สวัสดี “ครับ”",
    ),
    "declared-utf-16.html": (
        "<meta charset=utf-16><p>Grüße".encode(),
        "Grüße",
    ),
    "declared-in-a-comment.html": (
        "<!-- <meta charset=iso-8859-1> --><meta charset=utf-8><p>Grüße".encode(),
        "Grüße",
    ),
    "excel-unicode.csv": (
        "name\tsize\r\nÄpfel\t3\r\n".encode("utf-16"),
        "name: Äpfel\nsize: 3",
    ),
    # Pages
    "questions.html": (
        b"<title>FAQ</title><h2><button aria-expanded=false>How long?</button></h2>"
        b"<div hidden><p>Old.</p></div><p>A week<sup>1</sup>.<script>x()</script>",
        "FAQ\n\n## How long?\n\nA week¹.",
    ),
    "word-breaks.html": (
        b"<p>Donau<wbr>dampf&shy;schiff</p><p>a&nbsp;b&#8203;c<br>d</p>",
        "Donaudampfschiff\n\na b\u200bc\nd",
    ),
    # Markdown
    "toml.md": (
        b'+++\r\ntitle = "Deploying"\r\n+++\r\n# Other\r\nText.\r\n',
        'Deploying\n\n\n\n\n# Other\nText.',
    ),
    "fences.md": (
        b"<!-- # no -->\n````\n```\n# no\n```\n````\n\n    # no\n\nYes\n===\n",
        "Yes\n\n<!-- # no -->\n````\n```\n# no\n```\n````\n\n    # no\n\nYes\n===",
    ),
    # Tables
    "sep.csv": (b"sep=;\r\nname;size\r\nx, y;1\r\n", "name: x, y\nsize: 1"),
    "old-mac.csv": (b"name,size\rx,1\ry,2\r",
                    "name: x\nsize: 1\n---\nname: y\nsize: 2"),
    "inches.tsv": (b'part\tprice\n5" nail\t2\n"6"" bolt"\t3\n',
                   'part: 5" nail\nprice: 2\n---\npart: 6" bolt\nprice: 3'),
    # Terminals
    "colours.log": (
        b"12:00 \x1b[31mERROR\x1b[0m disk full\r\n"
        b'{"log":"\\u001b[36mconnected\\u001b[0m to \\u001b[1mpump\\u001b[22m"}\n'
        b"[32mINFO[39m valve open\n\x9b33mWARN\x9b0m low\n",
        '12:00 ERROR disk full\n{"log":"connected to pump"}\nINFO valve open\nWARN low',
    ),
    "colours.md": (
        b"# Log\n\n```\n$ \x1b]8;;https://a.b\x07make\x1b]8;;\x07 \x1b[1mall\x1b[m\n```\n",
        "Log\n\n# Log\n\n```\n$ make all\n```",
    ),
    "manual page.txt": (  # by groff -man -Tutf8 -P-c
        b"N\bNA\bAM\bME\bE\n       pump - move water\n\nS\bSY\bYN\bNO\bOP\bPS\bSI\bIS\bS\n"
        b"       p\bpu\bum\bmp\bp [-\b-v\bv] [_\bF_\bI_\bL_\bE ...]\n",
        "NAME\n       pump - move water\n\nSYNOPSIS\n       pump [-v] [FILE ...]",
    ),
    # Mail
    "stub.eml": (
        (
            f'{_MAIL}Content-Type: multipart/alternative; boundary="x"\n\n--x\n'
            "Content-Type: text/plain\n\n \n--x\nContent-Type: text/html; charset=utf-8\n"
            "Content-Transfer-Encoding: quoted-printable\n\n<p>We meet in K=C3=B6=\nln.\n--x--\n"
        ).encode(),
        "Minutes\n\nFrom: a@b.c\n\nWe meet in Köln.",
    ),
    "digest.eml": (
        (
            f'{_MAIL}Content-Type: multipart/mixed; boundary="x"\n\n--x\n'
            "Content-Type: text/plain\n\nFirst.\n--x\nContent-Type: image/png\n"
            "Content-Disposition: inline\nContent-Transfer-Encoding: base64\n\nAAAA\n--x\n"
            "Content-Type: text/plain\n\nLast.\n--x--\n"
        ).encode(),
        "Minutes\n\nFrom: a@b.c\n\nFirst.\n\nLast.",
    ),
    "iso-2022-jp.eml": (
        b"Subject: =?ISO-2022-JP?B?GyRCMnE1RBsoQg==?=\nFrom: a@b.c\n"
        b"Content-Type: text/plain; charset=ISO-2022-JP\n\n\x1b$B-!2q5D\x1b(B\n",
        "会議\n\nFrom: a@b.c\n\n①会議",
    ),
    "thunderbird.mbox": (
        b"From \nSubject: One\n\n>From here on.\n\nFrom - Tue Jan  2 10:00:00 2024\n"
        b"Subject: Two\n\nFrom Berlin at 12:30 on 5 May 2026\n",
        "One\n\nFrom here on.\n---\nTwo\n\nFrom Berlin at 12:30 on 5 May 2026",
    ),
    # Office
    "box-and-field.docx": (
        _word(
            _paragraph(
                "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wps:txbx>"
                f"<w:txbxContent>{_paragraph(_run('In a box.'))}</w:txbxContent></wps:txbx>"
                "</w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>"
                f"{_paragraph(_run('In a box.'))}</w:txbxContent></v:textbox></w:pict>"
                "</mc:Fallback></mc:AlternateContent></w:r>"
            )
            + _paragraph(
                _run("See page ")
                + '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGEREF x '
                '</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
                + _run("7")
                + '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
                + _run(", ISO")
                + "<w:r><w:noBreakHyphen/></w:r>"
                + _run("9001")
                + "<w:r><w:tab/></w:r>"
                + _run("end")
                + "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
            )
            + "<w:p><m:oMath><m:r><m:t>a=b</m:t></m:r></m:oMath></w:p>"
        ),
        "In a box.\n\nSee page 7, ISO-9001\tend\n\na=b",
    ),
    "rich-and-phonetic.xlsx": (
        _sheet(
            '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>size</t></is>'
            '</c></row><row r="2"><c r="A2" t="s"><v>1</v></c><c r="B2"><f>1+1</f><v>2</v></c>'
            '<c r="C2" t="e"><v>#DIV/0!</v></c><c r="D2" t="b"><v>1</v></c></row>',
            "<si><r><t>Na</t></r><r><rPr><b/></rPr><t>me</t></r></si>"
            '<si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh></si>',
        ),
        "[sheet Stock]\nName | size\n東京 | 2 | #DIV/0! | TRUE",
    ),
    "spaces in names.epub": (
        _zipped(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": "<container><rootfiles><rootfile "
                'full-path="OEBPS/p.opf"/></rootfiles></container>',
                "OEBPS/p.opf": '<package xmlns:dc="d"><metadata><dc:title>Tales</dc:title>'
                '</metadata><manifest><item id="b" href="b%20c.xhtml"/><item id="a" '
                'href="a.xhtml"/>'
                '<item id="c" href="c.png" media-type="image/png"/></manifest><spine>'
                '<itemref idref="b"/><itemref idref="a"/>'
                '<itemref idref="c"/>'
                "</spine></package>",
                "OEBPS/b c.xhtml": "<html><body><h1>First</h1><p>One.</p></body></html>",
                "OEBPS/a.xhtml": "<html><body><p>Two.</p></body></html>",
            }
        ),
        "Tales\n\n[chapter 1]\n# First\n\nOne.\n\n[chapter 2]\nTwo.",
    ),
    # PDF
    "hyphens.pdf": (
        pdf_bytes([[(12, "The norm ISO-"), (12, "9001 of the Anglo-"), (12, "Saxon lib-"),
                    (12, "rary.")], []], "Norms"),
        "Norms\n\n[page 1]\nThe norm ISO-9001 of the Anglo-Saxon library.\n\n[page 2]",
    ),
    "sideways.pdf": (
        pdf_bytes([[(12, "First line."), (12, "Second line.")]], "Side", page=b"/Rotate 90"),
        "Side\n\n[page 1]\nFirst line.\nSecond line.",
    ),
}  # fmt: skip
"""By name: the file, and the text that a reader sees; a line of hyphens is between documents."""


def write(folder: Path = FOLDER) -> None:
    """Write all files to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (data, text) in FILES.items():
        (folder / name).write_bytes(data)
        (folder / f"{name}.txt").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
