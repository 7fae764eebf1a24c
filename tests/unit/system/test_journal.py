"""Files of appended lines: a torn last line goes, and every other line stays."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arag_search.agent.models.base import ModelReply
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.models.replay import RecordingModel, read_recording
from arag_search.corpus import Chunk, ordinal_of
from arag_search.errors import AragError, RunError
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.questions.files import Question
from arag_search.runs.folder import RECORDS, read_records
from arag_search.runs.run import run
from arag_search.search.index import Index
from arag_search.system.durable import write_atomically
from arag_search.system.journal import JsonLinesFile
from arag_search.tools.preset_files import load_preset
from tests.support.openai_asking import QUESTION
from tests.support.oracle.engine import MemoryEngine
from tests.support.records import record
from tests.support.scripted_model import ScriptedModel


def write_record(path: Path) -> None:
    file = JsonLinesFile(path, RECORDS)
    file.append(record("q1", "Vienna").to_line())
    file.close()


def write_reply(path: Path) -> None:
    model = RecordingModel(ScriptedModel([ModelReply("Answer: Vienna")]), path)
    try:
        model.reply(QUESTION)
    finally:
        model.close()


def write_verdict(path: Path) -> None:
    VerdictCache(path).put("k1", "q1", "correct", "")


GRISELDA = Chunk("g.1", "g", "Griselda", "By Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (11,), {})
WRITERS = [write_record, write_reply, write_verdict]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def append_and_read(write: Callable[[Path], None], path: Path) -> list[Any]:
    """Append a line to a file and return all its records."""
    write(path)
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


@pytest.mark.parametrize("write", WRITERS)
def test_links_and_special_files_are_rejected_and_their_content_stays(
    tmp_path: Path, target: Path, write: Callable[[Path], None]
) -> None:
    write(target)
    content = target.read_bytes()
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (
        ("link", "it is a symbolic link"),
        ("dangling", "it is a symbolic link"),
        ("pipe", "it is not a regular file"),
    ):
        if (name, write) == ("pipe", write_verdict):
            continue  # the cache reads the file first, and a pipe has no content
        with pytest.raises(AragError, match=reason):
            write(tmp_path / name)
    assert target.read_bytes() == content
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("write", WRITERS)
def test_a_torn_last_line_is_removed_and_a_whole_one_gets_its_line_end(
    target: Path, write: Callable[[Path], None]
) -> None:
    write(target)
    line = target.read_bytes()
    for torn in (
        *(line[: len(line) // 2], line[:1], line[:9], line[:-2], b"\0" * 5000),
        line[:30] + b"x" * 200_000,
    ):
        target.write_bytes(line + torn)
        assert len(append_and_read(write, target)) == 2
    target.write_bytes(line + line[:-1])
    assert len(append_and_read(write, target)) == 3


@pytest.mark.parametrize("write", WRITERS)
def test_a_line_that_does_not_fit_leaves_the_other_lines_intact(
    target: Path, write: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(target)
    content = target.read_bytes()

    def half_write(descriptor: int, data: bytes) -> int:
        return whole_write(descriptor, data[: len(data) // 2])

    whole_write = os.write
    monkeypatch.setattr(os, "write", half_write)
    with pytest.raises(RunError, match="the disk took only a part of it"):
        write(target)
    assert target.read_bytes() == content


def test_a_complete_last_record_without_its_line_end_counts(tmp_path: Path) -> None:
    questions = [Question("q0", "Who wrote Griselda?", ("Vivaldi",))]
    arguments = Index(MemoryEngine([GRISELDA]), "memory"), questions, load_preset("logical_read")
    run(*arguments, OfflineModel(), tmp_path)
    path = tmp_path / "records.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    assert run(*arguments, OfflineModel(), tmp_path).tally.asked == 0
    assert path.read_bytes() == content
    assert set(read_records(tmp_path).by_id) == {"q0"}


def count_records(path: Path) -> int:
    stored = read_records(path.parent)
    assert (not stored.torn_bytes) is bool(stored.by_id)
    return len(stored.by_id)


def count_replies(path: Path) -> int:
    return len(read_recording(path)[0])


def count_verdicts(path: Path) -> int:
    return len(VerdictCache(path))


@pytest.mark.parametrize(
    ("write", "count"),
    [(write_record, count_records), (write_reply, count_replies), (write_verdict, count_verdicts)],
)
def test_readers_count_a_complete_last_line_without_its_end_but_not_a_torn_one(
    tmp_path: Path, write: Callable[[Path], None], count: Callable[[Path], int]
) -> None:
    path = tmp_path / "records.jsonl"
    write(path)
    line = path.read_bytes()
    path.write_bytes(line[:-1])
    assert count(path) == 1
    path.write_bytes(line[:-2])
    assert count(path) == 0


def test_a_link_with_the_temporary_name_of_a_replaced_file_is_not_followed(
    tmp_path: Path, target: Path
) -> None:
    target.write_bytes(b"mine")
    (tmp_path / "run.json.new").symlink_to(target)
    with pytest.raises(OSError, match=r"run\.json\.new"):
        write_atomically(tmp_path / "run.json", b"{}")
    assert target.read_bytes() == b"mine"


def test_closing_a_file_twice_does_no_harm(target: Path) -> None:
    file = JsonLinesFile(target, RECORDS)
    file.close()
    file.close()
