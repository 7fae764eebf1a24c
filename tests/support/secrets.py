"""A key and a password for tests, in the forms in which servers repeat them."""

import base64
import html
import json
import urllib.parse

KEY = 'sk-Very/"secret"+key&7\\'


LOGIN = ("anna", "s3cret/päss word")


def forms_of(secret: str) -> list[str]:
    """Return a secret in the forms in which servers repeat it."""
    raw = secret.encode()
    return [
        secret,
        secret.upper(),
        secret.swapcase(),
        json.dumps(secret)[1:-1],
        json.dumps(json.dumps(secret))[1:-1],
        json.dumps(secret).replace("/", "\\/")[1:-1],
        "".join(f"\\u{ord(character):04x}" for character in secret),
        "".join(f"\\u{ord(character):04X}" for character in secret),
        urllib.parse.quote(secret),
        urllib.parse.quote(secret, safe="").lower(),
        urllib.parse.quote_plus(secret),
        urllib.parse.quote(urllib.parse.quote(secret, safe="")),
        "".join(f"%{byte:02X}" for byte in raw),
        html.escape(secret),
        "".join(f"&#{ord(character)};" for character in secret),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        base64.b64encode(raw).decode().lower(),
        base64.b64encode(b"Bearer " + raw + b" and more").decode(),
        urllib.parse.quote(base64.b64encode(b"x" + raw).decode(), safe=""),
    ]
