"""The command embed, and the lines of arag-search info on vectors."""

import subprocess
import sys

import pytest

from arag_search.system.extras import install_line
from index_jobs.embedding.job import embed_index
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import Command, file_of
from tests.support.embeddings import (
    ENCODER,
    LOADING,
    SMALL,
    InterruptingProgress,
    build_small_index,
    fitting,
    with_options,
)


def test_the_command_reports_in_words_and_as_json(arag: Command) -> None:
    build_small_index(10)
    done = arag("embed", "index", "--encoder", ENCODER, "--vectors", "v", "--unit", "passage")
    assert (done.code, done.err) == (0, LOADING + "\n")
    assert done.lines[0] == ("Embedded index: vectors of 10 passages, 0.0 MB in v/store-00001.")
    assert done.lines[1] == "encoder: hashing:16, 16 dimensions; float32; index flat"
    assert done.lines[2].startswith("encoded: 10 rows in ")
    repetition = arag("embed", "index", "--encoder", ENCODER, "--vectors", "v", "--unit", "passage",
                 "--json")  # fmt: skip
    assert (repetition.json["up_to_date"], repetition.json["texts"]) == (True, {"passage": 10})


def test_ctrl_c_ends_the_command_with_130(arag: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    build_small_index(40)
    opening = "arag_search.system.progress.open_progress"
    with monkeypatch.context() as patch:
        patch.setattr(opening, lambda: InterruptingProgress(60))
        assert arag("embed", "index", "--encoder", ENCODER).code == 130


def test_an_index_on_a_server_needs_a_folder_for_its_vectors(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARAG_VECTORS", raising=False)
    done = arag("embed", "http://localhost:1/name", "--encoder", ENCODER)
    assert (done.code, done.out) == (1, "")
    assert "Do: Give --vectors DIR, or set ARAG_VECTORS." in done.err
    help_text = arag("embed", "--help").out
    assert "or hashing (finds words only)" in " ".join(help_text.split())


def test_info_shows_the_vectors_and_whether_they_fit(arag: Command) -> None:
    build_small_index(10)
    assert "  vectors  " not in arag("info", "index").out
    embed_index("index", ENCODER, SMALL)
    state, store = fitting()
    size = sum(file.stat().st_size for file in (state.path, *store.folder.iterdir()))
    assert arag("info", "index").lines[-1] == (
        f"  vectors      {state.path}: 30 sentences, 10 passages; hashing:16, 16 dimensions; flat,"
        f" float32, {size:,} bytes; of the index as it is; sizes of files compared"
    )
    delete_documents("index", ["d1"])
    now, before = arag("info", "index").lines[-2:]
    assert now.endswith("; of the index as it is; sizes of files compared")
    assert before.endswith("; of another state of the index, not searched; sizes of files compared")
    entry, _ = arag("info", "index", "--json").json["vectors"]
    assert (entry["fits"], entry["dead_share"]) == (True, 0)
    assert entry["texts"] == {"sentence": 27, "passage": 9}
    assert entry["rows"] == {"sentence": 11, "passage": 10}
    assert (entry["query_prefix"], entry["cut_texts"]) == ("", {"sentence": 0, "passage": 0})
    for number in range(2, 6):
        delete_documents("index", [f"d{number}"])
    line, _ = arag("info", "index").lines[-2:]
    assert "; 38.1% of the rows without a text; an index of the vectors is due: arag-search" in line
    fitting()[0].path.write_text("{}")
    damaged = arag("info", "index")
    assert damaged.code == 1
    assert "damaged: " in damaged.lines[-1]


def test_info_says_that_rows_are_behind_their_faiss_index(arag: Command) -> None:
    build_small_index(40)
    embed_index("index", ENCODER, with_options(index="IVF1,Flat"))
    more = [{"id": f"n{number}", "text": f"More {number}."} for number in range(10)]
    add_documents([file_of("more.jsonl", *more)], "index")
    (line, _) = arag("info", "index").lines[-2:]
    assert "; IVF1,Flat, float32, " in line
    assert "; 19.8% behind the index; an index of the vectors is due: arag-search embed" in line
    embed_index("index", ENCODER, with_options(index="IVF1,Flat"))
    assert "due" not in arag("info", "index").lines[-2]


@pytest.mark.parametrize("name", ["{}.state", "store-00001/passage.vectors", "passage.keys"])
def test_info_reports_a_truncated_file_and_with_checksums_a_flipped_byte(
    arag: Command, name: str
) -> None:
    build_small_index(10)
    embed_index("index", ENCODER, SMALL)
    state, store = fitting()
    path = state.path if name == "{}.state" else store.folder / name.removeprefix("store-00001/")
    content = bytearray(path.read_bytes())
    content[-3 if path != state.path else -70] ^= 1
    path.write_bytes(content)
    verified = arag("info", "index", "--checksums")
    assert verified.code == 1
    assert ": damaged: " in verified.lines[-1]
    if path != state.path:
        assert arag("info", "index").code == 0
        assert verified.lines[-1].endswith(
            f"rows 0 to 9 have changed. ({store.folder}) Embed the index again: arag-search embed"
            " index --overwrite"
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
