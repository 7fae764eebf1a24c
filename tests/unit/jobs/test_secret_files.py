"""Files of passwords and keys, told from guides about them by their names and texts."""

import hashlib
import random
import string

import pytest

from index_jobs.sources.folders.secret_files import (
    NAMED,
    SEED_WORDS,
    Suspicion,
    secrets_in,
    suspicion_of,
)

LETTERS = string.ascii_letters + string.digits
SEED = " ".join(SEED_WORDS.read_text().split()[7:2000:90])
GUIDE = "A secret is kept in the store, and never in a file.\n" * 3
LEFT_OUT_BY_NAME = """
    passwords.txt, passwords, Chrome Passwords.csv, my_passwords-2024.xlsx, passwords (1).txt,
    passwords copy.txt, credentials.json, secret.txt, secrets.yaml, passwd.log, login.txt,
    logins.json, tokens.csv, wallet-seed.txt, recovery-codes.txt, github-recovery-codes.txt,
    Backup-codes-ann.txt, BitLocker Recovery Key 12AB.TXT, ann_accessKeys.csv,
    Passwörter.txt, Passwo\u0308rter.txt, пароли.txt, 密码.txt
"""
KEY_FILES = """
    id_rsa, id_ed25519_sk, x.kdbx, a.PEM, a.ppk, prod.env, terraform.tfstate, .netrc, _netrc,
    pgpass.conf, .htpasswd, rootkey.csv, bitwarden_export_2024.json, lastpass_export.csv,
    service-account-1.json, client_secret_1.json
"""
NOTES = """
    passwords.md, password.md, secrets.md, credentials.md, api-keys.md, recovery-codes.md,
    passwords.org, secrets.rst, secrets.py, secrets.html, my_passwords-2024.docx, passwords.pdf,
    Wifi password.md, k8s-secrets.md, Mots de passe.md
"""
OTHERS = """
    tokens.md, keys.md, key.md, monkey.txt, password-reset.txt, The secret garden.txt,
    my_secrets.py,
    design-tokens.json, tokenizer.json, login.md, login.html, trade secrets.txt, compass.txt
"""


@pytest.mark.parametrize(
    ("names", "suspicion"),
    [(KEY_FILES, "key"), (LEFT_OUT_BY_NAME, "name"), (NOTES, "note"), (OTHERS, "text")],
)
def test_the_stems_hold_for_every_ending_and_prose_is_looked_at(
    names: str, suspicion: Suspicion
) -> None:
    split = [name.strip() for name in names.split(",")]
    assert {name: suspicion_of(name) for name in split} == dict.fromkeys(split, suspicion)


def secret(length: int = 32, letters: str = LETTERS) -> str:
    return "".join(random.Random(length).choices(letters, k=length))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("bank: hunter2\n" * 30, NAMED),
        (GUIDE, ""),
        ("很多人把密码写在文件里，这样做并不安全，请使用密码管理器。\n" * 3, ""),
        (f"Mine: {secret(60)}\n" * 9, NAMED),  # no words
        (f"\n-----BEGIN RSA PRIVATE KEY-----\n{secret()}\n", "a private key"),
        (
            f"Key of Ann\n-----BEGIN PRIVATE KEY-----\n{secret(400)}\n-----END PRIVATE KEY-----",
            "a private key",
        ),
        (f"{GUIDE}-----BEGIN PRIVATE KEY-----\n{secret(400)}\n-----END PRIVATE KEY-----", ""),
        (f"{GUIDE}-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", ""),
        (f"Wallet of my own:\n{SEED}", "the words of a wallet"),
        (
            "\n".join(f"{number}. {word.title()}" for number, word in enumerate(SEED.split())),
            "the words of a wallet",
        ),
        (f"These five words are others: {SEED}", NAMED),
        (" ".join(SEED.split()[:11]), NAMED),
    ],
)
def test_a_note_is_told_from_a_guide_by_its_text(text: str, what: str) -> None:
    assert secrets_in(text, "note", is_data=False) == what
    if what == NAMED:
        assert secrets_in(text, "text", is_data=False) == ""


KEY_LINES = [
    f"GITHUB_TOKEN=ghp_{secret(36)}",
    f"| Stripe key | sk_live_{secret(24)} |",
    f"- **OpenAI secret**: `sk-proj-{secret(40)}`",
    f'  "apiKey": "AIza{secret(35)}",',
    f"export DB_PASSWORD='{secret(20)}'",
    f"session secret => {secret(64, '0123456789abcdef')}",
]
OTHER_LINES = [
    "ssh key: /home/ann/.ssh/id_ed25519_2024",
    f"api key: https://example.org/{secret()}",
    "token version: v1.23.456-alpha.20240101",
    "secret file: prod-7Db2-Password9Key-2024.json",
    f"cache key: {secret(64, '0123456789abcdef')}",
    f"password hash: {secret(60)}",
    f"public key: {secret(60)}",
    f"key: sha256:{secret(64, '0123456789abcdef')}",
    "api_key: <YOUR_API_KEY_HERE_1>",
    "api_key: ${API_KEY_FROM_VAULT_1}",
    "keyword: machine-learning-2024-trends",
    "password: xxxxxxxxxxxxxxxxxxxx",
    f"colour: {secret()}",
    f"the key of the garden is {secret()}",
]


def test_three_lines_of_keys_that_are_more_than_half_of_all_are_a_list_of_keys() -> None:
    for line in KEY_LINES:
        assert secrets_in(f"# Keys\n{line}\n" * 3, "text", is_data=False) == "a list of keys", line
        assert secrets_in(f"{line}\n" * 2, "text", is_data=False) == ""
        assert secrets_in(f"{line}\nNothing.\n" * 3, "text", is_data=False) == ""
        assert secrets_in(f"{line}\nNothing.\n" * 3 + line, "text", is_data=False)
    for line in OTHER_LINES:
        assert secrets_in(f"{line}\n" * 3, "text", is_data=False) == "", line


def test_a_word_that_is_repeated_is_no_seed() -> None:
    assert secrets_in("Chapter.\n\n" * 50, "text", is_data=False) == ""


def test_the_words_of_wallets_are_those_of_bip_39() -> None:
    digest = hashlib.sha256(SEED_WORDS.read_bytes()).hexdigest()
    assert digest == "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
    assert len(SEED_WORDS.read_text().split()) == 2_048
    assert secrets_in(SEED_WORDS.read_text(), "text", is_data=False) == ""  # the list is no secret
