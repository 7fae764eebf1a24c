"""OnnxEncoder with small models whose vectors are worked out by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arag_search.errors import ArgumentError, EncoderFilesError, EncoderUnavailableError
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.encoders.onnx import OnnxEncoder
from tests.support.model_hub import running_hub
from tests.support.onnx_models import SPECIAL, WORDS, token_vectors, write_encoder
from tests.support.patience import PATIENCE_S

TEXTS = ["Vivaldi opera", "", "rain", "venice rome libretto rain opera vivaldi", "unknown word"]


def tokens_of(text: str, max_tokens: int = 6) -> list[int]:
    """Return the ids of the tokens of a text, cut to the length of the model."""
    known = (*SPECIAL, *WORDS)
    words = [known.index(word) if word in known else 1 for word in text.lower().split()]
    return [2, *words[: max_tokens - 2], 3]


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(
    ("pooling", "pooled"),
    [
        ({"pooling_mode_mean_tokens": True}, lambda rows: rows.mean(0)),
        ({"pooling_mode": "cls"}, lambda rows: rows[0]),
        ({"pooling_mode_max_tokens": True}, lambda rows: rows.max(0)),
        ({"pooling_mode": ["lasttoken"]}, lambda rows: rows[-1]),
    ],
)
def test_a_vector_is_pooled_as_the_files_of_the_model_say(
    tmp_path: Path, pooling: dict[str, object], pooled: Any, side: str
) -> None:
    folder = write_encoder(tmp_path / "model", pooling=pooling, side=side)
    encoder = OnnxEncoder(str(folder), batch_size=3)
    expected = [unit(pooled(token_vectors()[tokens_of(text)])) for text in TEXTS]
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
    alone = [encoder.encode([text])[0] for text in TEXTS]
    np.testing.assert_allclose(alone, expected, atol=1e-6)
    assert encoder.cut_texts == 2  # the fourth text, once in the batch and once alone
    assert encoder.encode([]).shape == (0, 4)
    encoder.close()
    with pytest.raises(EncoderUnavailableError):
        encoder.encode(TEXTS)


def test_prompts_and_lengths_are_those_of_the_files_unless_others_are_given(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "model", max_tokens=5)
    prompts = {"query": "rome ", "document": "rain "}
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    encoder = open_encoder(str(folder))
    identity = encoder.identity
    assert (identity.kind, identity.name) == ("onnx", f"onnx:{folder}")
    assert (identity.dimension, identity.max_tokens) == (4, 5)
    assert (identity.query_prefix, identity.document_prefix) == ("rome ", "rain ")
    mean = [
        unit(token_vectors()[tokens_of(text, 5)].mean(0)) for text in ("rome opera", "rain opera")
    ]
    np.testing.assert_allclose(encoder.encode_queries(["opera"]), mean[:1], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(["opera"]), mean[1:], atol=1e-6)
    again = open_encoder(identity.name, query_prefix="", device="cpu")
    plain = unit(token_vectors()[tokens_of("opera", 5)].mean(0))
    np.testing.assert_allclose(again.encode_queries(["opera"]), [plain], atol=1e-6)
    with pytest.raises(ArgumentError) as raised:
        open_encoder(str(folder), device="cuda")
    assert "have no options: device" in raised.value.what


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"modules": ("Transformer", "Pooling", "Dense")}, "modules Transformer, Pooling, Dense"),
        ({"modules": ("Transformer",)}, "modules Transformer"),
        ({"pooling": {"pooling_mode": "weightedmean"}}, "pooling weightedmean"),
        ({"pooling": {"pooling_mode": ["mean", "max"]}}, "pooling mean, max"),
        ({"pooling": {"pooling_mode_mean_sqrt_len_tokens": True}},
         "pooling pooling_mode_mean_sqrt_len_tokens"),
        ({"pooling": {"pooling_mode": "mean", "include_prompt": False}},
         "pooling without the prompt"),
        ({"query_expansion": {"length": 8}}, 'query_expansion {"length": 8}'),
        ({"do_lower_case": True}, "do_lower_case true"),
    ],
)  # fmt: skip
def test_a_model_whose_settings_would_silently_make_other_vectors_is_refused(
    tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    folder = write_encoder(tmp_path / "model", **changes)
    with pytest.raises(EncoderFilesError) as raised:
        OnnxEncoder(str(folder))
    assert raised.value.what == f"The model has a part that is not known here: {what}."
    assert raised.value.allowed
    assert raised.value.do == 'Use it with the extra "semantic", or choose another model.'


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("onnx/model.onnx", b"cut", "InvalidProtobuf"),
        ("onnx/model.onnx", None, "NoSuchFile"),
        ("tokenizer.json", b"", "EOF"),
        ("modules.json", b"[1]", "not subscriptable"),
        ("1_Pooling/config.json", None, "FileNotFoundError"),
    ],
)
def test_what_the_libraries_say_of_files_is_passed_on_with_advice(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    folder = write_encoder(tmp_path / "model")
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    with pytest.raises(EncoderFilesError) as raised:
        OnnxEncoder(str(folder))
    assert raised.value.what.startswith("The files of the model cannot be loaded (")
    assert words in raised.value.what
    assert raised.value.do == (
        'Download onnx/model.onnx again, or make it: "Without torch" in index_jobs/VECTORS.md.'
    )


def test_a_graph_with_other_inputs_is_refused_when_it_is_tried(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "model", inputs=("input_ids", "position_ids"))
    with pytest.raises(EncoderFilesError, match="KeyError: 'position_ids'"):
        OnnxEncoder(str(folder))


def test_only_the_files_that_are_needed_are_fetched_from_the_hub(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "model")
    files = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    other = {"model.safetensors": b"w", "openvino/model.bin": b"o", "onnx/quantised.onnx": b"q"}
    script = (
        "from arag_search.vectors.encoders.choose import open_encoder\n"
        "print(open_encoder('onnx:org/m').encode(['rain']).shape)"
    )
    with running_hub("org/m", {**files, **other}) as hub:
        environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hub"), "PATH": ""}
        process = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env=environment,
            timeout=PATIENCE_S,
        )
        assert process.stdout == "(1, 4)\n", process.stderr
        assert sorted(hub.fetched) == sorted(files)
