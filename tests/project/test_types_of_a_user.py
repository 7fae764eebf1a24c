"""The types that a program of a user meets, as mypy sees them from outside of the packages."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

PROGRAM = """
from collections.abc import Iterator
from pathlib import Path

import arag_search
import index_jobs
from arag_search import testing


def records() -> Iterator[dict[str, object]]:
    yield {"id": "a", "title": "Vivaldi", "text": "Vivaldi was born in Venice.", "year": 1678}


def main(folder: Path) -> list[str]:
    options = index_jobs.BuildOptions(metadata={"year": "number"}, workers=0, overwrite=True)
    report = arag_search.build_index(records(), folder, options)
    added = index_jobs.add([{"id": "b", "text": "A poem."}], to=folder, source="poems")
    index_jobs.delete(folder, ["b"])
    index_jobs.sync(["notes"], folder, index_jobs.SyncOptions(allow_deletes=True))
    lines = [f"{report.documents} {added.added}"]
    with arag_search.open_index(folder, filter={"year": {"gte": 1600}}) as index:
        result = index.logical_search("vivaldi AND born", top_k=3)
        lines += [f"{hit.score:.2f} {hit.id} {hit.title}: {hit.snippet}" for hit in result.hits]
        tools = arag_search.Toolbox(index, "logical_read", within={"year": 1678})
        reply = tools.call("logical_search", '{"query": "vivaldi"}')
        lines += [reply.text, str(reply.tokens), *(span.id for span in reply.passages)]
    encoder = arag_search.open_encoder("mine", lambda texts: [[1.0, 0.0] for _ in texts], 2)
    index_jobs.embed(folder, encoder)
    index_jobs.BuildOptions(chunk_tokens="many")  # wrong
    reveal_type(index)
    reveal_type(result.hits[0].score)
    reveal_type(reply.tokens)
    return lines


def test_a_search() -> None:
    index = testing.index_of(["Vivaldi was born in Venice."])
    assert [hit.id for hit in index.logical_search("venice").hits] == ["1.1"]
"""
LARGE = (
    *("transformers", "torch", "openai", "ray", "onnx", "onnxruntime", "sentence_transformers"),
    *("huggingface_hub", "onnxscript", "mcp", "cryptography", "matplotlib", "langid"),
    *("markdown_it", "pypdfium2", "tokenizers", "faiss"),
)
"""What our functions import, and mypy would read whole: no type of it is in ours."""


@pytest.mark.server
def test_a_program_of_a_user_is_checked_strictly_and_meets_our_types(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    sections = ",".join(f"{name}.*" for name in LARGE)
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nstrict = True\n[mypy-{sections}]\n"
        "follow_imports = skip\nfollow_imports_for_stubs = True\n"
    )
    command = [sys.executable, "-m", "mypy", "program.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=3 * PATIENCE_S
    )
    wrong, *revealed = [line.partition(": ")[2] for line in done.stdout.splitlines()[:-1]]
    assert 'Argument "chunk_tokens" to "BuildOptions"' in wrong
    shown = ('"arag_search.search.index.Index"', '"float"', '"int"')
    assert revealed == [f"note: Revealed type is {kind}" for kind in shown]
