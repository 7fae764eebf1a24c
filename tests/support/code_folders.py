"""A small folder of code: a definition, many short files that import it, a test, and notes."""

from pathlib import Path

PARSER = '''"""Replies of a server."""


def other_thing_of_servers():
    return 1


def parse_response(text: str) -> str:
    """Make a reply of a text."""
    return text.strip()
'''
FILES = {
    "lib/parsing.py": PARSER,
    "lib/__init__.py": "from lib.parsing import parse_response\n",
    "lib/client.py": "from lib.parsing import parse_response\n\n\ndef send():\n"
    '    return parse_response("x")\n',
    "lib/session.py": '"""Sessions retry what a socket drops."""\n\nRETRIES = 3\n',
    "tests/test_session.py": '"""Sessions retry what a socket drops."""\n\nRETRY = 3\n',
    "notes.md": "# Notes\n\nThe socket drops a lot. We call parse_response then.\n",
    **{
        f"later/{number}.py": "from lib.parsing import parse_response\n\n\n"
        f"def parse_response_later{number}():\n    return parse_response('{'x ' * number}')\n"
        for number in range(12)
    },
    **{
        f"users/{number}.py": f"import lib\n\n\ndef use{number}():\n"
        f"    return lib.parse_response('{'x ' * number}')\n"
        for number in range(30)
    },
}


def code_folder(folder: Path) -> Path:
    """Write the files, and return the folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder
