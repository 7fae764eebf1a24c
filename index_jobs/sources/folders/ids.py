"""The ids of files, which are made of their paths."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from arag_search.corpus import MAX_ID_BYTES, is_code, nfc

_ODD = re.compile(
    r"(?:(?<![^/])\s+|\s+(?![^/])|\\(?=x[0-9a-f]{2})"
    # what follows could be composed with the last digit
    r"|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff])[\u0300-\u036f]*"
)
_BETWEEN_WORDS = re.compile(r"[\W_]+|(?<=[^\W\d_A-Z])(?=[A-Z])")
_ESCAPED_BLANK = re.compile(r"\\x(?:0[9a-d]|20)")
_CUT = r"\x00"
"""A mark that is in no other id, since no name of a file has this byte."""
_MAX_ID_BYTES = MAX_ID_BYTES - 32
"""The longest id of a file, to which its rows add their numbers."""


def path_id(relative: str) -> str:
    """Return the id of the file with this path, in NFC. Paths that are not equal in NFC have
    different ids.

    Blanks at either end of a name, controls and bytes that are not UTF-8 are escaped by their bytes
    (``caf\\xe9.txt``). If a name looks like such an escape, its backslash is escaped. A long path
    is cut: its beginning, a digest, and the ending stay.
    """
    identifier = nfc(_ODD.sub(_escaped, relative))
    data = identifier.encode()
    if len(data) <= _MAX_ID_BYTES:
        return identifier
    end = _CUT + hashlib.sha256(data).hexdigest()[:32] + os.path.splitext(identifier)[1][-32:]
    return data[: _MAX_ID_BYTES - len(end.encode())].decode("utf-8", "ignore") + end


def usual_title(identifier: str) -> str:
    """Return the title of a file that has none of its own."""
    name = identifier if is_code(identifier) else Path(identifier).stem
    return _ESCAPED_BLANK.sub(" ", name)


def words_of_name(identifier: str) -> str:
    """Return the words in the name of a file without its ending. They are apart at signs, and where
    a capital follows a small letter. None for ``index``, the name of a page of a folder."""
    words = _BETWEEN_WORDS.sub(" ", Path(identifier).stem).strip()
    return "" if words.lower() == "index" else words


def _escaped(odd: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(odd[0]))


def folders_of(identifier: str) -> Iterator[str]:
    for place, character in enumerate(identifier, 1):
        if character == "/":
            yield identifier[:place]
