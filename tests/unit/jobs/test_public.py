"""The public functions of index_jobs: light to import, checked, and with progress callbacks."""

from __future__ import annotations

import subprocess
import sys

import pytest

import index_jobs
from arag_search.errors import ArgumentError
from arag_search.system.progress import Progress


def test_every_public_name_is_loaded_when_it_is_used_and_no_sooner() -> None:
    script = (
        "import sys, index_jobs\n"
        "assert not [name for name in sys.modules if name.startswith('index_jobs.')]\n"
        "for name in index_jobs.__all__: assert callable(getattr(index_jobs, name)), name\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert set(index_jobs.__all__) <= set(dir(index_jobs))
    with pytest.raises(AttributeError):
        _ = index_jobs.update


@pytest.mark.parametrize("name", ["build_index", "add", "sync"])
def test_one_string_is_no_list_of_sources(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"^sources is 'notes'\."):
        getattr(index_jobs, name)("notes", "index")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("build_index", (["notes"], 7)),
        ("build_index", (["notes"], "index", {"overwrite": True})),
        ("add", ([b"notes"], "index")),
        ("sync", (["notes"], "index", None, print)),
        ("delete", ("index", "byron")),
        ("embed", ("index", 7)),
    ],
)
def test_wrong_types_are_rejected_before_anything_is_read(
    name: str, arguments: tuple[object, ...]
) -> None:
    with pytest.raises(ArgumentError) as raised:
        getattr(index_jobs, name)(*arguments)
    assert raised.value.allowed


def test_a_callback_gets_what_a_display_would_show() -> None:
    events: list[index_jobs.ProgressEvent] = []
    progress = index_jobs.Progress(events.append)
    assert isinstance(progress, Progress)
    progress.begin("documents", 100)
    progress.update(40, 4, "0.1 MB")
    progress.stage("training", 1, 2)
    progress.note("a note")
    progress.end()
    event = index_jobs.ProgressEvent
    assert events == [
        event("documents", 0, 100, 0),
        event("documents", 40, 100, 4, "0.1 MB"),
        event("training", 1, 2),
        event(text="a note"),
    ]
