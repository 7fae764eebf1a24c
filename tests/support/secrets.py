"""A key and a password for tests, in the forms in which servers repeat them."""

import json

KEY = "sk-Very_secret/key+7="
LOGIN = ("anna", "s3cret/p\u00e4ss word")


def forms_of(secret: str) -> list[str]:
    """Return a secret in the forms in which servers repeat it, each once."""
    return list(dict.fromkeys([secret, json.dumps(secret)[1:-1]]))
