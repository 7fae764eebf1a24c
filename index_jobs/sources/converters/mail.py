"""Mail: single messages (.eml), mailboxes (.mbox), and web archives, which have its form."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

from arag_search.errors import MissingExtraError, SourceError
from index_jobs.sources.converters.html import decoded_markup, document_of, page_of
from index_jobs.sources.converters.registry import (
    FILE_TYPES,
    ConvertedDocument,
    Converter,
    reading,
    whole_file,
)
from index_jobs.sources.encodings import Decoded, decoded
from index_jobs.sources.lines.files import SKIP, CorpusFile, Fields, readable

MAX_MESSAGE_BYTES = 1 << 26
"""The largest message of a mailbox (64 MiB)."""

_PIECE_BYTES = 1 << 20
_SEPARATOR = re.compile(rb"From(?: .*)?\r?\n?", re.DOTALL)
_FIRST_HEADER = re.compile(rb"[!-9;-~]+[ \t]*:")
_DATED = re.compile(rb"From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} .*\d\d:\d\d.*\d{4}")
_QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.MULTILINE)
_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
_KIND = "a message"
_NO_BODY = "messages without a text"
_STUB = 2
"""An alternative is a stub if another one has more than so many times its words."""

_APPLE_SIZE = re.compile(rb"(\d{1,9})[ \t]*\r?\n")  # properties stand behind so many bytes
_LOOKED_AT_BYTES = 1 << 14
_HEADERS = re.compile(rb"(?:[!-9;-~]{1,76}[ \t]*:[^\n]*\n(?:[ \t]+\S[^\n]*\n)*)+(?=\r?\n|\Z)")
_OF_MAIL = re.compile(
    rb"^(?:Message-ID|Received|Return-Path|Delivered-To|MIME-Version|X-Mozilla-Status"
    rb"|Date(?=:[^\n]*\d{4}[^\n]*\d:\d\d))[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_SENT = re.compile(rb"^(?:From|Subject|Received|To)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_SIGNATURE = "-- "
_CHARSET = re.compile(rb"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


def convert_message(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the message as one document. Its subject is the title; the text begins with sender,
    recipients and date. Attachments are named, not read. See Converter."""
    data = whole_file(path, where)
    if size := _APPLE_SIZE.match(data):
        data = data[size.end() : size.end() + int(size[1])]
    yield _document(data, "", where)


def convert_archive(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the page of a web archive, which ``start`` names, or is the first. See Converter."""
    from email import message_from_bytes, policy

    with reading("a web archive", where):
        data = _with_readable_head(whole_file(path, where), where)
        archive = message_from_bytes(data, policy=policy.default)
        pages = [part for part in archive.walk() if part.get_content_type() == "text/html"]
        pages.sort(key=lambda part: part["Content-ID"] != archive.get_param("start"))
        content = cast("bytes", pages[0].get_payload(decode=True))
    yield document_of(decoded_markup(content, where, pages[0].get_content_charset("")))


def mail_converter(path: Path, where: str) -> Converter | None:
    """Return the converter of a file that begins as mail does; None for other files, and where
    mail cannot be read. Raises SourceError.

    Mail begins with headers that name a sender and a way or a time. In a mailbox, a line
    ``From ...`` stands before them.
    """
    with readable(where), path.open("rb") as file:
        beginning = file.read(_LOOKED_AT_BYTES)
    beginning = beginning[: beginning.rfind(b"\n") + 1]
    first, _, rest = beginning.partition(b"\n")
    is_box = _SEPARATOR.fullmatch(first + b"\n") is not None
    headers = _HEADERS.match(rest if is_box else beginning.lstrip(b"\r\n"))
    if not headers or not _OF_MAIL.search(headers[0]) or not _SENT.search(headers[0]):
        return None
    try:
        FILE_TYPES["message"].check()
    except MissingExtraError:
        return None
    return convert_mailbox if is_box else convert_message


def convert_mailbox(
    path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield a document for each message. See ``convert_message``."""
    with CorpusFile(path, where) as file:
        for number, message in enumerate(_messages(file), 1):
            place = f"{where}, message {number}"
            try:
                if message is None:
                    allowed = f"at most {MAX_MESSAGE_BYTES >> 20} MiB"
                    raise SourceError("The message is too long.", where=place, allowed=allowed)
                yield _document(message, str(number), place)
            except SourceError as error:
                error.do = SKIP
                yield error


def _messages(file: CorpusFile) -> Iterator[bytes | None]:
    """Yield the messages of a mailbox; None for a message that is too long.

    A message begins, after an empty line, with a line ``From sender date`` (or, by Thunderbird, a
    bare ``From ``). The line has a date as in the standard, or a header follows it.

    Raises SourceError if the file does not begin so.
    """
    lines: list[bytes] = []
    size = 0
    after_blank, at_line_start, is_begun = True, True, False
    line, following = b"", _line(file).removeprefix(codecs.BOM_UTF8)
    while True:
        line, following = following, _line(file) if following else b""
        is_start = at_line_start and after_blank and _SEPARATOR.fullmatch(line) is not None
        if not line or (is_start and (_DATED.match(line) or _FIRST_HEADER.match(following))):
            if is_begun:
                data = _QUOTED_SEPARATOR.sub(rb"\1", b"".join(lines))
                yield data if size <= MAX_MESSAGE_BYTES else None
            if not line:
                return
            lines, size, is_begun = [], 0, True
        elif is_begun:
            size += len(line)
            if size <= MAX_MESSAGE_BYTES:
                lines.append(line)
        elif line.strip():
            raise SourceError(
                "The file is not a mailbox.",
                where=file.name,
                allowed='a first line such as "From ada@example.org Thu Jan  1 00:00:00 2026"',
                do="Name a single message with the ending .eml.",
            )
        after_blank = at_line_start and not line.strip()
        at_line_start = line.endswith(b"\n")


def _line(file: CorpusFile) -> bytes:
    with readable(file.name):
        return file.stream.readline(_PIECE_BYTES)


def _document(data: bytes, suffix: str, where: str) -> ConvertedDocument:
    from email import message_from_bytes, policy

    with reading(_KIND, where):
        message = message_from_bytes(_with_readable_head(data, where), policy=policy.default)
        headers = {name: _header(message, name) for name in (*_SHOWN_HEADERS, "Subject")}
        attachments = [_words(part.get_filename()) for part in message.iter_attachments()]
        shown = ((name.lower(), value) for name, value in headers.items() if value)
        metadata = {name: value for name, value in shown if name != "date"} | _identity(message)
    if not headers["From"] and not headers["Subject"] and not headers["Date"]:
        raise SourceError(
            "The file is not a message: it has no From, Subject or Date.",
            where=where,
            allowed="a message as a mail program saves it",
        )
    with reading(_KIND, where):
        unread: Counter[str] = Counter()
        parts = map(str.strip, _shown_parts(message, where, unread))
        body = "\n\n".join(filter(None, parts))
    lines = [f"{name}: {headers[name]}" for name in _SHOWN_HEADERS if headers[name]]
    lines += [f"Attachment: {name}" for name in attachments if name]
    text = "\n".join(lines) + "\n\n" + body
    return ConvertedDocument(
        suffix, headers["Subject"], text.strip(), metadata, unread=unread if body else {_NO_BODY: 1}
    )


def _header(message: EmailMessage, name: str) -> str:
    """Return the values of a header on one line, also if they are malformed."""
    try:
        return ", ".join(_words(value) for value in message.get_all(name, []))
    except Exception:  # the parser of headers fails in many ways
        values = (value for key, value in message.raw_items() if key.lower() == name.lower())
        return ", ".join(map(_words, values))


def _words(value: object) -> str:
    text = " ".join(str(value or "").split())
    # Bytes that are not ASCII are lone surrogates here.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _identity(message: EmailMessage) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if identifier := _header(message, "Message-ID"):
        values["message_id"] = identifier.strip("<>")
    try:
        moment = message["Date"].datetime
    except Exception:  # see _header
        moment = None
    if isinstance(moment, datetime):
        zone = moment.tzinfo or UTC
        values["date"] = moment.replace(tzinfo=zone, microsecond=0).isoformat()
    return values


def _shown_parts(message: EmailMessage, where: str, unread: Counter[str]) -> Iterator[str]:
    """Yield the texts that a mail program shows of a message or of a part of it, in order, also of
    messages that were forwarded. Of alternatives this is the plainest that has as much to say."""
    kind, subtype = message.get_content_maintype(), message.get_content_subtype()
    if message.is_attachment() and kind != "message":
        return
    if subtype == "alternative" and message.is_multipart():
        parts = (cast("EmailMessage", part) for part in message.iter_parts())
        texts = ["\n\n".join(_shown_parts(part, where, unread)).strip() for part in parts]
        most = max((len(text.split()) for text in texts), default=0)
        yield next((text for text in texts if len(text.split()) * _STUB >= most), "")
    elif subtype == "rfc822" and message.is_multipart():
        inner = cast("EmailMessage", message.get_payload(0))
        shown = [(name, _header(inner, name)) for name in (*_SHOWN_HEADERS, "Subject")]
        yield "\n".join(f"{name}: {value}" for name, value in shown if value)
        yield from _shown_parts(inner, where, unread)
    elif message.is_multipart():
        for part in message.iter_parts():
            yield from _shown_parts(cast("EmailMessage", part), where, unread)
    elif kind == "text" and subtype in ("plain", "html", "enriched", "markdown"):
        yield _text(message, where, unread)
    elif kind in ("text", "multipart", "message"):
        unread[f"parts of the type {kind}/{subtype}"] += 1


def _text(part: EmailMessage, where: str, unread: Counter[str]) -> str:
    content = cast("bytes", part.get_payload(decode=True) or b"")
    charset = part.get_content_charset("")
    try:
        read = decoded(content, where, charset)
    except SourceError:  # not worth losing the rest of a message
        text = content.replace(b"\0", b"").decode("utf-8", "replace")
        read = Decoded(text, text.count("\ufffd"))
    unread.update(read.unread)
    if part.get_content_subtype() == "html":
        return page_of(read.text).text
    lines = read.text.splitlines()
    if str(part.get_param("format")).lower() == "flowed":
        is_joined = str(part.get_param("delsp")).lower() == "yes"
        lines = _unflowed(lines, "" if is_joined else " ")
    return "\n".join(line.rstrip() for line in lines)


def _unflowed(lines: Iterable[str], blank: str) -> Iterator[str]:
    """Return the paragraphs of a text of ``format=flowed`` (RFC 3676). Its lines end with a blank
    if they go on; ``blank`` joins two of them."""
    paragraphs: list[list[str]] = []
    depth, goes_on = "", False
    for line in lines:
        text = line.lstrip(">")
        quote, text = line[: len(line) - len(text)], text.removeprefix(" ")
        if not goes_on or quote != depth or text == _SIGNATURE:
            paragraphs.append([f"{quote} "] if quote else [])
        depth, goes_on = quote, text.endswith(" ") and text != _SIGNATURE
        paragraphs[-1].append(text[:-1] + blank if goes_on else text)
    return map("".join, paragraphs)


def _with_readable_head(data: bytes, where: str) -> bytes:
    """Return a message without a byte order mark, its headers in UTF-8."""
    data = data.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
    head = _BLANK_LINE.split(data, 1)[0]
    with suppress(UnicodeDecodeError):
        head.decode()
        return data
    charset = _CHARSET.search(head)
    label = charset[1].decode("ascii", "replace") if charset else ""
    with suppress(SourceError):
        data = decoded(head, where, label).text.encode() + data[len(head) :]
    return data
