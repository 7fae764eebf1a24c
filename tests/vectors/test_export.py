"""A real model by its ONNX files: the vectors of torch, and searches without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from arag_search.cli.app import run
from arag_search.corpus import split_at
from arag_search.vectors.base import PROBE_TEXTS, differences
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.encoders.sentence_transformer import SentenceTransformerEncoder
from index_jobs.cutting.sentences import sentence_ends
from tests.support.commands import SAMPLE
from tests.support.onnx_models import export_model

LEAST_COSINE = 0.9999
ODD = (
    *("", " ", "\n\t", "\x00", "a", "?", "word", "漢字かな交じり文", "ไม่มีช่องว่าง", "العربية"),
    *("e\u0301", "\u202eabc", "🎉👩‍👩‍👧", "\ufffd", "ﬁ", "İstanbul ß ẞ", "x\u00a0y\u200bz"),
    *("[CLS] [SEP] <s> </s> <pad>", "1234567890 " * 9, "https://a.b/c?d=e&f", "snake_case::x->y"),
    *("word " * 400, "half \ud83d"),
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, minilm: str) -> Path:
    return export_model(minilm, tmp_path_factory.mktemp("exports") / "model")


@pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.long)])
def test_onnx_files_give_the_vectors_of_the_model_in_batches_and_alone(
    exported: Path, minilm: str, count: int
) -> None:
    torch = SentenceTransformerEncoder(minilm, device="cpu")
    onnx = open_encoder(f"onnx:{exported}")
    for field in ("dimension", "max_tokens", "query_prefix", "document_prefix"):
        assert getattr(onnx.identity, field) == getattr(torch.identity, field)
    kept, now = tuple(map(tuple, torch.encode(PROBE_TEXTS).tolist())), onnx.encode(PROBE_TEXTS)
    assert not differences(torch.identity, kept, onnx.identity, now)
    lines = Path(SAMPLE).read_text("utf-8").splitlines()
    articles: list[str] = [json.loads(line)["text"] for line in lines]
    sentences = [part for text in articles for part in split_at(text, tuple(sentence_ends(text)))]
    # Sentences, then two of them, and so on; the first are repeated, so that the model cuts them.
    whole = [
        "".join(sentences[start : start + 1 + more])
        for more, start in (divmod(number, len(sentences)) for number in range(count))
    ]
    texts = [*ODD, *(text * 40 for text in whole[:3]), *whole][:count]
    torch_cut, onnx_cut = torch.cut_texts, onnx.cut_texts
    vectors = torch.encode(texts)
    assert (onnx.encode(texts) * vectors).sum(1).min() >= LEAST_COSINE
    assert onnx.cut_texts - onnx_cut == torch.cut_texts - torch_cut >= 3
    assert (onnx.encode_queries(texts) * torch.encode_queries(texts)).sum(1).min() >= LEAST_COSINE
    for text, vector in zip(texts[::5], vectors[::5], strict=True):
        assert onnx.encode([text])[0] @ vector >= LEAST_COSINE


def test_an_index_is_embedded_and_searched_where_torch_cannot_be_imported(
    exported: Path, tmp_path: Path
) -> None:
    some, location = tmp_path / "some.jsonl", str(tmp_path / "index")
    some.write_text("".join(Path(SAMPLE).read_text("utf-8").splitlines(keepends=True)[:6]))
    assert run(["index", str(some), "--to", location]) == 0
    script = f"""
import sys
for name in ("torch", "transformers", "sentence_transformers"):
    sys.modules[name] = None
import arag_search
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
report = embed_index({location!r}, "onnx:{exported}", EmbedOptions(unit="passage"))
with arag_search.open_index({location!r}) as index:
    hits = index.hybrid_search("In which town was the composer of the Four Seasons born?").hits
print(report.up_to_date, bool(hits))
"""
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert process.stdout == "False True\n", process.stderr
