"""Truncated, lost and changed files of an index and of its vectors cause an error of ours or leave
the right answer. They cause no wrong answer and no traceback."""

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.support.commands import SAMPLE, Command, file_of

pytestmark = pytest.mark.server

INDEX_DAMAGES = 40
VECTOR_DAMAGES = 25
LEXICAL = (
    ("search", "{}", '"antonio vivaldi" AND librett*', "--json"),
    ("search", "{}", "opera AND venice", "--granularity", "sentence", "--json"),
    ("search", "{}", "--tool", "keyword", "Griselda", "--json"),
    ("read", "{}", "vivaldi.1", "--json"),
)
SEMANTIC = (
    ("search", "{}", "--tool", "semantic", "Who wrote Evangeline?", "--json"),
    ("search", "{}", "--tool", "hybrid", "opera venice", "--json"),
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an index of the sample, with an update and vectors."""
    import contextlib
    import io

    from arag_search.cli.app import run

    place = tmp_path_factory.mktemp("pristine")
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()):
        more = file_of("more.jsonl", {"id": "more", "title": "More", "text": "An opera in Venice."})
        for words in (
            ["index", SAMPLE, "--to", "i", "--metadata", "year:number"],
            ["delete", "i", "byron"],
            ["add", more, "--to", "i"],
            ["embed", "i", "--encoder", "hashing"],
        ):
            assert run(words) == 0
    return place / "i"


def damage(path: Path, chance: Random) -> str:
    """Change a file in a way that ``chance`` decides, and return what was done.

    Vectors keep their values: opening does not read them, ``info`` does.
    """
    data = bytearray(path.read_bytes())
    kinds = ["cut", "lost", "lengthened"]
    if "vectors" not in path.parts or path.suffix in (".json", ".jsonl"):
        kinds += ["flipped", "flipped", "flipped", "zeroed"]
    kind = chance.choice(kinds)
    if kind == "lost" or not data:
        path.unlink()
        return "lost"
    offset = chance.randrange(len(data))
    if kind == "flipped":
        data[offset] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del data[offset:]
    elif kind == "lengthened":
        data += chance.randbytes(9)
    else:
        end = min(len(data), offset + 64)
        data[offset:end] = bytes(end - offset)
    path.write_bytes(data)
    return f"{kind} at {offset}"


def answers(arag: Command, index: Path, commands: tuple[tuple[str, ...], ...]) -> list[object]:
    """Return what the commands answer: JSON, or None where they fail with a message of ours."""
    replies: list[object] = []
    for command in commands:
        done = arag(*(word.format(index) for word in command))
        assert done.code in (0, 2), (command, done)
        assert "Traceback" not in done.err
        if done.code:
            assert not done.out.strip(), (command, done)
            assert done.err.strip()
        answer = done.json if done.code == 0 else None
        if answer is not None and "milliseconds" in answer:
            del answer["milliseconds"]
        replies.append(answer)
    return replies


def check_damages(
    arag: Command, pristine: Path, copy: Path, commands: tuple[tuple[str, ...], ...], count: int
) -> None:
    """Damage ``count`` of the files that the commands read, each in its own copy of the index."""
    of_vectors = commands is SEMANTIC
    chance = Random(count)
    shutil.copytree(pristine, copy)
    expected = answers(arag, copy, commands)
    assert None not in expected
    for name in chance.choices(files_of(pristine, of_vectors=of_vectors), k=count):
        shutil.rmtree(copy)
        shutil.copytree(pristine, copy)
        change = damage(copy / name, chance)
        for answer, right_answer in zip(answers(arag, copy, commands), expected, strict=True):
            assert answer in (None, right_answer), (name, change)


def files_of(pristine: Path, *, of_vectors: bool) -> list[Path]:
    names = (path.relative_to(pristine) for path in pristine.rglob("*") if path.is_file())
    return sorted(name for name in names if (name.parts[0] == "vectors") == of_vectors)


def test_damaged_files_of_an_index_are_refused_or_do_no_harm(
    pristine: Path, tmp_path: Path, arag: Command
) -> None:
    check_damages(arag, pristine, tmp_path / "i", LEXICAL, INDEX_DAMAGES)


def test_damaged_files_of_vectors_are_refused_or_do_no_harm(
    pristine: Path, tmp_path: Path, arag: Command
) -> None:
    check_damages(arag, pristine, tmp_path / "i", SEMANTIC, VECTOR_DAMAGES)
