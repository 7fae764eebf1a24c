"""Mail: single messages (.eml) and mailboxes (.mbox)."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

from arag_search.errors import SourceError
from index_jobs.sources.converters.html import page_of
from index_jobs.sources.converters.registry import ConvertedDocument, reading, whole_file
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

_CHARSET = re.compile(rb"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


def convert_message(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the message as one document. Its subject is the title; the text begins with sender,
    recipients and date. Attachments are named, not read. See Converter."""
    yield _document(whole_file(path, where), "", where)


def convert_mailbox(
    path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield a document for each message. See ``convert_message``."""
    with CorpusFile(path, where) as file:
        for number, message in enumerate(_messages(file), 1):
            place = f"{where}, message {number}"
            if message is None:
                yield SourceError(
                    "The message is too long.",
                    where=place,
                    allowed=f"at most {MAX_MESSAGE_BYTES >> 20} MiB",
                    do=SKIP,
                )
                continue
            try:
                yield _document(message, str(number), place)
            except SourceError as error:
                error.do = SKIP
                yield error


def _messages(file: CorpusFile) -> Iterator[bytes | None]:
    """Yield the messages of a mailbox; None for one that is too long.

    A message begins, after an empty line, with a line ``From sender date`` (or, by Thunderbird, a
    bare ``From ``): one with a date as in the standard, or that a header follows.

    Raises SourceError if the file does not begin so.
    """
    lines: list[bytes] = []
    size = 0
    after_blank, at_line_start, is_begun = True, True, False
    line, following = b"", _line(file).removeprefix(codecs.BOM_UTF8)
    while True:
        line, following = following, _line(file) if following else b""
        if not line:
            break
        is_start = at_line_start and after_blank and _SEPARATOR.fullmatch(line) is not None
        if is_start and (_DATED.match(line) or _FIRST_HEADER.match(following)):
            if is_begun:
                yield _joined(lines, size)
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
    if is_begun:
        yield _joined(lines, size)


def _line(file: CorpusFile) -> bytes:
    with readable(file.name):
        return file.stream.readline(_PIECE_BYTES)


def _joined(lines: list[bytes], size: int) -> bytes | None:
    if size > MAX_MESSAGE_BYTES:
        return None
    return _QUOTED_SEPARATOR.sub(rb"\1", b"".join(lines))


def _document(data: bytes, suffix: str, where: str) -> ConvertedDocument:
    from email import message_from_bytes, policy

    with reading(_KIND, where):
        message = message_from_bytes(_with_readable_head(data, where), policy=policy.default)
        headers = {name: _header(message, name) for name in (*_SHOWN_HEADERS, "Subject")}
        attachments = [_words(part.get_filename()) for part in message.iter_attachments()]
        metadata = {name.lower(): value for name, value in headers.items() if value}
        metadata.pop("date", None)
        metadata |= _identity(message)
    if not headers["From"] and not headers["Subject"] and not headers["Date"]:
        raise SourceError(
            "The file is not a message: it has no From, Subject or Date.",
            where=where,
            allowed="a message as a mail program saves it",
        )
    with reading(_KIND, where):
        body, unread = _body(message, where)
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


def _body(message: EmailMessage, where: str) -> tuple[str, dict[str, int]]:
    unread: dict[str, int] = {}
    texts = [text for part in _shown_parts(message, where, unread) if (text := part.strip())]
    return "\n\n".join(texts), unread


def _shown_parts(message: EmailMessage, where: str, unread: dict[str, int]) -> Iterator[str]:
    """Yield the texts that a mail program shows of a message or of a part of it, in order: of
    alternatives the plainest one that has as much to say, and messages that were forwarded."""
    kind, subtype = message.get_content_maintype(), message.get_content_subtype()
    if message.is_attachment() and kind != "message":
        return
    if subtype == "alternative" and message.is_multipart():
        options: list[tuple[int, str]] = []
        for part in message.iter_parts():
            text = "\n\n".join(_shown_parts(cast("EmailMessage", part), where, unread)).strip()
            options.append((len(text.split()), text))
        most = max((words for words, _ in options), default=0)
        yield next((text for words, text in options if words * _STUB >= most), "")
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
        name = f"parts of the type {kind}/{subtype}"
        unread[name] = unread.get(name, 0) + 1


def _text(part: EmailMessage, where: str, unread: dict[str, int]) -> str:
    content = cast("bytes", part.get_payload(decode=True) or b"")
    charset = part.get_content_charset("")
    try:
        read = decoded(content, where, charset)
    except SourceError:  # not worth losing the rest of a message
        text = content.replace(b"\0", b"").decode("utf-8", "replace")
        read = Decoded(text, text.count("\ufffd"))
    for kind, number in read.unread.items():
        unread[kind] = unread.get(kind, 0) + number
    if part.get_content_subtype() != "html":
        return "\n".join(line.rstrip() for line in read.text.splitlines())
    return page_of(read.text).text


def _with_readable_head(data: bytes, where: str) -> bytes:
    """Return a message without a byte order mark, its headers in UTF-8."""
    data = data.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
    end = _BLANK_LINE.search(data)
    head = data[: end.start()] if end else data
    if head.isascii():
        return data
    charset = _CHARSET.search(head)
    with suppress(SourceError):
        label = charset[1].decode("ascii", "replace") if charset else ""
        try:
            text = head.decode()
        except UnicodeDecodeError:
            text = decoded(head, where, label).text
        return text.encode() + data[len(head) :]
    return data
