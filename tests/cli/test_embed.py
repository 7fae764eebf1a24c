"""The command embed, and the lines of arag-search info on vectors."""

import subprocess
import sys

import pytest

from arag_search.system.extras import install_line
from index_jobs.embedding.job import embed_index
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import Command
from tests.support.embeddings import (
    ENCODER,
    LOADING,
    SMALL,
    InterruptingProgress,
    build_small_index,
    only_sidecar,
)


def test_the_command_reports_in_words_and_as_json(arag: Command) -> None:
    build_small_index(10)
    done = arag("embed", "index", "--encoder", ENCODER, "--vectors", "v", "--unit", "passage")
    assert (done.code, done.err) == (0, LOADING + "\n")
    path, _ = only_sidecar("v")
    assert done.lines[0].startswith("Embedded index: vectors of 10 passages in 1 shard, 0.0 MB in ")
    assert done.lines[0].endswith(f" {path}.")
    assert done.lines[1] == "encoder: hashing:16, 16 dimensions; float32; index flat"
    assert done.lines[3].endswith("summed over 1 process")
    repetition = arag("embed", "index", "--encoder", ENCODER, "--vectors", "v", "--unit", "passage",
                 "--json")  # fmt: skip
    assert (repetition.json["up_to_date"], repetition.json["rows"]) == (True, {"passage": 10})


def test_ctrl_c_ends_the_command_with_130(arag: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    build_small_index(40)
    opening = "arag_search.system.progress.open_progress"
    with monkeypatch.context() as patch:
        patch.setattr(opening, lambda: InterruptingProgress(100))
        assert arag("embed", "index", "--encoder", ENCODER).code == 130


def test_an_index_on_a_server_needs_a_folder_for_its_vectors(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARAG_VECTORS", raising=False)
    done = arag("embed", "http://localhost:1/name", "--encoder", ENCODER)
    assert (done.code, done.out) == (1, "")
    assert "Do: Give --vectors DIR, or set ARAG_VECTORS." in done.err
    help_text = arag("embed", "--help").out
    assert "--ca-certs" in help_text
    assert "hashing, which needs no model" in " ".join(help_text.split())


def test_info_shows_the_vectors_and_whether_they_fit(arag: Command) -> None:
    build_small_index(10)
    assert "  vectors  " not in arag("info", "index").out
    embed_index("index", ENCODER, SMALL)
    path, manifest = only_sidecar("index/vectors")
    size = sum(file.stat().st_size for file in path.iterdir())
    assert arag("info", "index").lines[-1] == (
        f"  vectors      {path}: 30 sentences, 10 passages; hashing:16, 16 dimensions; flat,"
        f" float32, {size:,} bytes; of the index as it is; sizes of files compared"
    )
    delete_documents("index", ["d1"])
    assert (
        arag("info", "index")
        .lines[-1]
        .endswith("; of the index as it is, 1 passage deleted since; sizes of files compared")
    )
    (entry,) = arag("info", "index", "--json").json["vectors"]
    assert (entry["fits"], entry["deleted_passages"]) == (True, 1)
    assert entry["rows"] == {"sentence": 30, "passage": 10}
    delete_documents("index", ["d2"], vectors="elsewhere")
    assert (
        arag("info", "index")
        .lines[-1]
        .endswith("; of another state of the index, not searched; sizes of files compared")
    )
    assert entry["fingerprint"] == manifest.fingerprint
    (path / "vectors.json").write_text("{}")
    damaged = arag("info", "index")
    assert damaged.code == 1
    assert "damaged: " in damaged.lines[-1]


@pytest.mark.parametrize(
    "name",
    ["sentence.ends.npy", "column-00.text.npy", "shard-00000.passage.npy", "passage.keys.npy"],
)
def test_info_reports_a_truncated_file_and_with_checksums_a_flipped_byte(
    arag: Command, name: str
) -> None:
    build_small_index(10)
    embed_index("index", ENCODER, SMALL)
    path = only_sidecar("index/vectors")[0] / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert arag("info", "index").lines[-1].endswith("; sizes of files compared")
    verified = arag("info", "index", "--checksums")
    assert verified.code == 1
    assert (
        f"damaged: The file has changed since it was written: its SHA-256 differs. ({path})"
        in verified.out
    )
    path.write_bytes(content[:-1])
    truncated = arag("info", "index")
    assert (truncated.code, f"bytes, not {len(content):,}. ({path})" in truncated.out) == (1, True)


def test_without_the_extra_the_command_says_which_line_installs_it() -> None:
    build_small_index(1)
    script = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "from arag_search.cli.app import run\n"
        f"sys.exit(run(['embed', 'index', '--encoder', '{ENCODER}']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"Do: Install the extra: {install_line('vectors')}" in done.stderr
