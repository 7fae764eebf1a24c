"""Cutting and loading in two stages make the same index, whatever happens in between."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arag_search.cli.app import run
from arag_search.errors import AragError, IndexLockedError
from index_jobs.__main__ import stages
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import BuildReport
from index_jobs.stages.chunk import Share, chunk_sources
from index_jobs.stages.chunk_report import folder_status
from index_jobs.stages.load import load_chunks
from tests.support.builds import (
    InterruptingProgress,
    corpus,
    in_own_folder,  # noqa: F401
    same_index,
    troublesome_corpus,
)
from tests.support.commands import CommandResult, file_of, process

PLAIN = BuildOptions()
CHUNKS = Path("chunks")
ODD = BuildOptions(chunk_tokens=300, metadata={"year": "number"}, skip_bad_lines=True)

CHILD = """
import os, signal, sys
from pathlib import Path
import arag_search.system.progress
from index_jobs.stages.chunk import chunk_sources
from index_jobs.stages.load import load_chunks
from index_jobs.build.options import BuildOptions

stage, moment, workers, *sources = sys.argv[1:]

class Killing(arag_search.system.progress.Progress):
    def update(self, read_bytes, documents, details=""):
        if documents >= int(moment):
            os.kill(os.getpid(), signal.SIGKILL)

options = BuildOptions(checkpoint_s=0, workers=int(workers))
if stage == "chunk":
    chunk_sources(sources, Path("chunks"), options, Killing())
else:
    load_chunks(Path("chunks"), Path("index"), options, Killing())
"""


def stage(capsys: pytest.CaptureFixture[str], *arguments: str) -> CommandResult:
    capsys.readouterr()
    code = run(list(arguments), "python -m index_jobs", stages)
    return CommandResult(code, *capsys.readouterr())


def kill_stage(name: str, moment: int, *sources: str, workers: int = 0) -> None:
    """Run a stage in a process that kills itself after writing a number of documents."""
    child = process(CHILD, name, str(moment), str(workers), *sources, ARAG_JVM_HEAP="128m")
    _, errors = child.communicate()
    assert child.returncode == -signal.SIGKILL, errors


def refusal(*arguments: Any, load: bool = False) -> str:
    with pytest.raises(AragError) as caught:
        load_chunks(*arguments) if load else chunk_sources(*arguments)
    return str(caught.value)


def comparable(report: BuildReport) -> dict[str, Any]:
    """Return a report without the values that differ from run to run."""
    values = json.loads(report.to_json())
    for name in ("location", "generation", "seconds", "run_seconds", "documents_per_second"):
        del values[name]
    return {**values, "skipped_examples": len(values["skipped_examples"]), "bulk_bytes": 0}


def chunk_files() -> dict[str, bytes]:
    """Return the files of the folder of chunks, by name."""
    return {path.name: path.read_bytes() for path in sorted(CHUNKS.iterdir())}


# Equality with one command


def test_two_stages_make_the_same_index_and_report_as_one_command() -> None:
    sources = [
        troublesome_corpus("a.jsonl", 200),
        corpus("b.jsonl", 150),
        troublesome_corpus("c.jsonl", 60),
    ]
    direct = build_index(sources, Path("one"), ODD)
    chunk_sources(sources, CHUNKS, ODD)
    staged = load_chunks(CHUNKS, Path("two"), PLAIN)
    assert comparable(staged) == comparable(direct)
    assert staged.skipped_lines > 200  # The first stage skips bad lines, the second duplicate ids.
    assert same_index("two") == same_index("one")


def test_text_passages_and_long_documents_survive_the_two_stages() -> None:
    Path("notes").mkdir()
    Path("notes/a.md").write_text("# Café\n\n" + "The sea is wide. " * 400)
    Path("notes/b.png").touch()
    Path("empty").mkdir()
    file_of("p.jsonl", {"id": "p", "title": "P", "sentences": ["Sea one.", "Two."], "tags": ["x"]})
    file_of("g.json", json.dumps([{"corpus_name": "Sea", "context": "An opera. " * 900}]))
    sources = ["notes", "empty", "p.jsonl", "g.json"]
    options = replace(PLAIN, chunk_tokens=100, metadata={"tags": "keyword"}, workers=1)
    assert chunk_sources(sources, CHUNKS, options).workers == 1
    direct = build_index(sources, Path("one"), options)
    assert comparable(load_chunks(CHUNKS, Path("two"), replace(PLAIN, workers=1))) == comparable(
        direct
    )
    assert same_index("two") == same_index("one")
    assert direct.left_out == {".png": 1}


# Interruptions


@pytest.mark.parametrize("workers", [0, 1])
def test_a_killed_chunk_stage_resumes_and_ends_with_the_same_chunks(workers: int) -> None:
    sources = [corpus("a.jsonl", 200), file_of("b.jsonl", {"id": "x", "text": "Last."})]
    kill_stage("chunk", 100, *sources, workers=workers)
    status = folder_status(CHUNKS)
    assert [shard.stage for shard in status.shards] == ["under way", "missing"]
    assert 0 < status.documents <= 128
    with (CHUNKS / "00000.jsonl.gz.new").open("ab") as file:
        file.write(b"what a crash leaves")
    report = chunk_sources(sources, CHUNKS, PLAIN)
    assert report.continued == status.documents
    assert (report.documents, report.missing) == (201, 0)
    written = chunk_files()
    chunk_sources(sources, CHUNKS, PLAIN)
    assert chunk_files() == written
    assert sorted(written) == [
        "00000.json", "00000.jsonl.gz", "00001.json", "00001.jsonl.gz", "lock", "manifest.json",
    ]  # fmt: skip
    CHUNKS.rename("resumed")
    chunk_sources(sources, CHUNKS, PLAIN)
    whole = gzip.decompress(Path("chunks/00000.jsonl.gz").read_bytes())
    assert gzip.decompress(written["00000.jsonl.gz"]) == whole


def test_damaged_chunks_of_an_unfinished_source_are_cut_again() -> None:
    source = corpus("a.jsonl", 200)
    kill_stage("chunk", 100, source)
    under_way = CHUNKS / "00000.jsonl.gz.new"
    data = bytearray(under_way.read_bytes())
    data[len(data) // 4] ^= 1
    under_way.write_bytes(data)
    progress = InterruptingProgress(10_000)
    report = chunk_sources([source], CHUNKS, PLAIN, progress)
    assert "a.jsonl: starting over, because its chunks are damaged" in progress.notes
    assert (report.documents, report.continued) == (200, 0)


def test_a_killed_load_stage_resumes_and_ends_with_the_same_index() -> None:
    sources = [corpus("a.jsonl", 120), file_of("b.jsonl", {"id": "x", "text": "The sea.", "o": 1})]
    chunk_sources(sources, CHUNKS, PLAIN)
    kill_stage("load", 100)
    report = load_chunks(CHUNKS, Path("index"), BuildOptions(checkpoint_s=0))
    assert report.continued == 64
    assert report.undeclared_metadata == {"o": 1}
    build_index(sources, Path("one"), PLAIN)
    assert same_index("index") == same_index("one")


def test_ctrl_c_leaves_a_checkpoint() -> None:
    source = corpus("a.jsonl", 300)
    stopping = InterruptingProgress(100)
    with pytest.raises(KeyboardInterrupt):
        chunk_sources([source], CHUNKS, PLAIN, stopping)
    assert stopping.notes[-1] == "Stopped. Run the same command again: it resumes where it stopped."
    assert chunk_sources([source], CHUNKS, PLAIN).continued == 128


# Errors


def test_a_flipped_byte_is_found_before_anything_is_built() -> None:
    chunk_sources([corpus("a.jsonl", 20)], CHUNKS, PLAIN)
    path = CHUNKS / "00000.jsonl.gz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    digest = json.loads((CHUNKS / "00000.json").read_text())["record"]["sha256"]
    assert refusal(CHUNKS, Path("index"), PLAIN, load=True) == (
        "The chunks of a.jsonl are damaged.\n"
        "Where: chunks/00000.jsonl.gz\n"
        f"Allowed: {len(data):,} bytes with the SHA-256 {digest}\n"
        "Do: Copy the file again, or remove it and run the same chunk command again."
    )
    assert not Path("index").exists()
    path.unlink()
    assert folder_status(CHUNKS).shards[0].stage == "damaged"
    assert chunk_sources(["a.jsonl"], CHUNKS, PLAIN).documents == 20
    assert folder_status(CHUNKS).missing == 0


@pytest.mark.parametrize("name", ["00000.json", "manifest.json"])
def test_a_damaged_record_is_reported(name: str) -> None:
    chunk_sources([corpus("a.jsonl", 20)], CHUNKS, PLAIN)
    path = CHUNKS / name
    path.write_text(path.read_text().replace('"documents": 20', '"documents": 21')[:-1] + "}" * (
        name == "00000.json"
    ))  # fmt: skip
    assert refusal(CHUNKS, Path("index"), PLAIN, load=True) == (
        f"The file is damaged.\nWhere: chunks/{name}\n"
        "Do: Copy it again, or remove it and run the same chunk command again."
    )


def test_shares_are_cut_apart_and_loaded_together() -> None:
    sources = [corpus("a.jsonl", 20), file_of("b.jsonl", {"id": "x", "text": "Sea."})]
    sources.append(file_of("c.jsonl", {"id": "y", "text": "Opera."}))
    report = chunk_sources(sources, CHUNKS, PLAIN, None, Share(1, 2))
    assert (report.sources, report.documents, report.missing) == (2, 21, 1)
    assert refusal(CHUNKS, Path("index"), PLAIN, load=True) == (
        "1 of 3 sources are not cut completely.\n"
        "Where: b.jsonl (00001)\n"
        "Allowed: a folder in which all sources are cut completely\n"
        "Do: Run the same chunk command again, or copy the files of the other machines into chunks."
    )
    Path("a.jsonl").rename("elsewhere")  # A machine needs only the sources that it cuts.
    chunk_sources(sources, Path("other"), PLAIN, None, Share(2, 2))
    assert Path("other/manifest.json").read_bytes() == Path("chunks/manifest.json").read_bytes()
    for path in Path("other").glob("00001.*"):
        path.rename(CHUNKS / path.name)
    assert folder_status(CHUNKS).missing == 0
    Path("elsewhere").rename("a.jsonl")
    load_chunks(CHUNKS, Path("index"), PLAIN)
    build_index(sources, Path("one"), PLAIN)
    assert same_index("index") == same_index("one")


def test_other_options_and_sources_are_refused_and_say_what_changed() -> None:
    source = corpus("a.jsonl", 3)
    chunk_sources([source], CHUNKS, PLAIN)
    other = BuildOptions(chunk_tokens=500, skip_bad_lines=True)
    assert refusal([source, corpus("b.jsonl", 1)], CHUNKS, other) == (
        "The folder was started with other options or sources: --chunk-tokens was 1000, is 500;"
        " --skip-bad-lines was false, is true; the sources, or their order.\n"
        "Where: chunks\n"
        "Allowed: the same command as before\n"
        "Do: Give another --out, or remove the folder."
    )
    corpus("a.jsonl", 4)
    assert refusal([source], CHUNKS, PLAIN) == (
        "The source was changed after it was cut.\n"
        "Where: a.jsonl\n"
        "Do: Remove chunks/00000.json to cut it again, or give another --out."
    )
    (CHUNKS / "00000.json").unlink()
    assert chunk_sources([source], CHUNKS, PLAIN).documents == 4


def test_a_folder_of_something_else_is_left_alone() -> None:
    CHUNKS.mkdir()
    (CHUNKS / "mine.txt").write_text("mine")
    assert refusal([corpus("a.jsonl", 3)], CHUNKS, PLAIN) == (
        "The folder is not empty, and holds no chunks.\n"
        "Where: chunks\n"
        "Allowed: a new folder, or one that this command has begun\n"
        "Do: Give another --out."
    )
    assert list(chunk_files()) == ["mine.txt"]
    assert refusal(CHUNKS, Path("index"), PLAIN, load=True) == (
        "The folder holds no chunks.\n"
        "Where: chunks\n"
        "Allowed: the folder that was given to python -m index_jobs chunk as --out\n"
        "Do: Cut the sources first: python -m index_jobs chunk SOURCE... --out DIR"
    )


def test_a_bad_line_stops_unless_it_is_skipped() -> None:
    file_of("a.jsonl", {"id": "1", "text": "Sea."}, "oops", {"id": "2", "text": "Opera."})
    assert refusal(["a.jsonl"], CHUNKS, PLAIN).startswith("The line is not JSON (")
    report = chunk_sources(["a.jsonl"], Path("other"), replace(PLAIN, skip_bad_lines=True))
    assert (report.documents, report.skipped_lines) == (2, 1)
    assert report.skipped_examples[0].startswith("a.jsonl, line 2: The line is not JSON (")


def test_a_duplicate_id_is_reported_with_both_places() -> None:
    lines = [{"id": f"d{number}", "text": "Sea."} for number in range(100)]
    file_of("a.jsonl", *lines, {"id": "d3", "text": "Again."})
    skip = "Do: Fix it, or skip it with --skip-bad-lines."
    assert refusal(["a.jsonl"], CHUNKS, PLAIN) == (
        'Duplicate id "d3": two records have it.\n'
        f"Where: a.jsonl, line 101; first: a.jsonl, line 4\n{skip}"
    )
    file_of("a.jsonl", *lines)
    file_of("b.jsonl", {"id": "d3", "text": "Again."})
    chunk_sources(["a.jsonl", "b.jsonl"], Path("both"), PLAIN)
    assert refusal(Path("both"), Path("index"), PLAIN, load=True) == (
        'Duplicate id "d3": two records have it.\n'
        f"Where: b.jsonl, line 1; first: a.jsonl, line 4\n{skip}"
    )
    report = load_chunks(Path("both"), Path("index"), replace(PLAIN, skip_bad_lines=True))
    assert (report.documents, report.skipped_lines) == (100, 1)


def test_a_corpus_without_a_document_is_an_error() -> None:
    Path("empty").mkdir()
    expected = (
        "The corpus is empty: no document was found.\n"
        "Where: empty\n"
        "Do: Name a folder with files that can be read, or files of records; see --include."
    )
    assert refusal(["empty"], CHUNKS, PLAIN) == expected
    assert refusal(CHUNKS, Path("index"), PLAIN, load=True) == expected
    Path("full").mkdir()
    Path("full/a.txt").write_text("Sea.")
    assert chunk_sources(["full", "empty"], Path("other"), PLAIN).documents == 1


HOLDING = """
import sys
from pathlib import Path
from index_jobs.stages.chunk_folder import ChunkFolder
folder = ChunkFolder(Path("chunks"))
folder.hold(0)
print("held", flush=True)
sys.stdin.read()
"""


def test_two_processes_do_not_cut_the_same_source() -> None:
    sources = [corpus("a.jsonl", 3), file_of("b.jsonl", {"id": "x", "text": "Sea."})]
    chunk_sources(sources, CHUNKS, PLAIN, None, Share(2, 2))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(IndexLockedError) as caught:
            chunk_sources(sources, CHUNKS, PLAIN)
        other.communicate()
    assert str(caught.value) == (
        "Another process is cutting this source.\n"
        "Where: chunks/00000.jsonl.gz.new\n"
        "Do: Wait for it, or give each process its own share: --share 1/2, --share 2/2."
    )
    assert chunk_sources(sources, CHUNKS, PLAIN).documents == 4


def test_a_full_disk_is_reported_and_the_same_command_resumes() -> None:
    source = corpus("a.jsonl", 300)
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "sys.dont_write_bytecode = True;"  # Python would leave truncated files
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000));"
        "from index_jobs.__main__ import main, stages; main('python -m index_jobs', stages)"
    )
    child = process(script, "chunk", source, "--out", "chunks")
    _, errors = child.communicate()
    assert child.returncode == 1
    assert errors.splitlines()[-3:] == [
        "python -m index_jobs: There is no space left to write the chunks (File too large).",
        "Where: chunks",
        "Do: Free some space and run the same command again: it resumes where it stopped.",
    ]
    assert chunk_sources([source], CHUNKS, PLAIN).documents == 300


# The commands


def test_the_commands_say_what_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    file_of("a.jsonl", {"id": "1", "title": "T", "text": "The sea. An opera.", "other": 1})
    done = stage(capsys, "chunk", "a.jsonl", "--out", "chunks")
    assert done.code == 0
    assert re.sub(r"MB; .*", "MB; ...", done.out) == (
        "Cut 1 source into chunks: 1 document in 1 chunk, 2 sentences, 6 tokens; 0.0 MB; ...\n"
        "ignored, not declared with --metadata: other (1)\n"
    )
    assert stage(capsys, "chunk", "a.jsonl", "--out", "chunks", "--json").json["continued"] == 1
    assert stage(capsys, "status", "chunks").lines == [
        "chunks: 1 of 1 source cut, 1 document in 1 chunk, 2 sentences, 6 tokens; 0.0 MB.",
        "00000  finished   a.jsonl: 1 document, 0.0 MB",
        "Next: python -m index_jobs load chunks --to INDEX",
    ]
    assert stage(capsys, "status", "chunks", "--json").json["shards"][0]["stage"] == "finished"
    loaded = stage(capsys, "load", "chunks", "--to", "index", "--json", "--bm25", "0.9,0.4")
    assert (loaded.json["documents"], loaded.json["sources"]) == (
        1, [{"name": "a.jsonl", "format": "documents"}],
    )  # fmt: skip
    assert stage(capsys, "chunk", "a.jsonl", "--out", "chunks", "--share", "3/2").err == (
        'python -m index_jobs: --share: "3/2" is not a share.\n'
        "Allowed: I/N such as 1/4, I from 1 to N\n"
    )


def test_help_loads_no_module_that_reads_corpora() -> None:
    script = (
        "import sys; sys.argv = ['x', 'chunk', '--help'];"
        "from index_jobs.__main__ import main, stages\n"
        "try: main('python -m index_jobs', stages)\n"
        "finally: print([n for n in ('jpype', 'opensearchpy', 'orjson') if n in sys.modules])"
    )
    out, _ = process(script, PYTHONPATH=os.pathsep.join(sys.path)).communicate()
    assert out.startswith("Usage: python -m index_jobs chunk [OPTIONS] [SOURCE]...")
    assert out.endswith("[]\n")
