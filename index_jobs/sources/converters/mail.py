"""Mail: single messages (.eml) and mailboxes (.mbox)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

from arag_search.errors import SourceError
from index_jobs.sources.converters.html import page_of
from index_jobs.sources.converters.registry import ConvertedDocument, reading, whole_file
from index_jobs.sources.encodings import decoded
from index_jobs.sources.formats import SKIP, Fields
from index_jobs.sources.records import CorpusFile, readable

MAX_MESSAGE_BYTES = 1 << 26
"""The largest message of a mailbox (64 MiB)."""

_PIECE_BYTES = 1 << 20
_SEPARATOR = re.compile(rb"From \S.*\d\d:\d\d.*\d{4}")
_QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.MULTILINE)
_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
_KIND = "a message"


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

    A message begins with a line ``From sender date`` after an empty line. Raises SourceError if the
    file does not begin with such a line.
    """
    lines: list[bytes] = []
    size = 0
    after_blank, at_line_start, is_begun = True, True, False
    while True:
        with readable(file.name):
            line = file.stream.readline(_PIECE_BYTES)
        if not line:
            break
        if at_line_start and after_blank and _SEPARATOR.match(line):
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


def _joined(lines: list[bytes], size: int) -> bytes | None:
    if size > MAX_MESSAGE_BYTES:
        return None
    return _QUOTED_SEPARATOR.sub(rb"\1", b"".join(lines))


def _document(data: bytes, suffix: str, where: str) -> ConvertedDocument:
    from email import message_from_bytes, policy

    with reading(_KIND, where):
        message = message_from_bytes(data, policy=policy.default)
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
        body = _body(message, where)
    lines = [f"{name}: {headers[name]}" for name in _SHOWN_HEADERS if headers[name]]
    lines += [f"Attachment: {name}" for name in attachments if name]
    text = "\n".join(lines) + "\n\n" + body
    return ConvertedDocument(suffix, headers["Subject"], text.strip(), metadata)


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
    """Return the id of a message, and its date in UTC if it can be read."""
    values: dict[str, Any] = {}
    if identifier := _header(message, "Message-ID"):
        values["message_id"] = identifier.strip("<>")
    try:
        moment = message["Date"].datetime
    except Exception:  # see _header
        moment = None
    if isinstance(moment, datetime):
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        values["date"] = moment.replace(tzinfo=None, microsecond=0).isoformat() + "Z"
    return values


def _body(message: EmailMessage, where: str) -> str:
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    content = cast("bytes", part.get_payload(decode=True) or b"")
    charset = part.get_content_charset("")
    try:
        text = decoded(content, where, charset)
    except SourceError:  # not worth losing the rest of a message
        text = content.replace(b"\0", b"").decode("utf-8", "replace")
    if part.get_content_subtype() != "html":
        return "\n".join(line.rstrip() for line in text.splitlines())
    return page_of(text, where).text
