"""The SentenceTransformerEncoder with the real MiniLM, offline."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arag_search.errors import ArgumentError, EncoderFilesError, EncoderUnavailableError
from arag_search.vectors.base import PROBE_TEXTS, EncoderIdentity, differences
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.encoders.model_files import packaged_folder
from arag_search.vectors.encoders.sentence_transformer import SentenceTransformerEncoder
from tests.support.examples import examples
from tests.support.patience import PATIENCE_S
from tests.support.real_model import MINILM as PACKAGE

pytestmark = pytest.mark.server

WEIGHTS = "model.safetensors"
TEXTS = [
    "Antonio Vivaldi wrote the opera Griselda.",
    "a",
    "The libretto was revised by Carlo Goldoni, who died in Paris in 1793. " * 9,
    "It rained in Rome.",
    "Vivaldi's operas were shown in Venice.",
]
ODD = ["", " ", "\x00", "half \ud83d", "漢字かな", "🎉👩‍👩‍👧", "é", "\u202eabc", "word " * 10_000]


@pytest.fixture(scope="module")
def encoder(minilm: str) -> Iterator[SentenceTransformerEncoder]:
    opened = open_encoder(minilm)
    assert isinstance(opened, SentenceTransformerEncoder)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def bare() -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder_of_package()), device="cpu")


def folder_of_package() -> Path:
    folder = packaged_folder(PACKAGE)
    assert folder is not None
    return folder


def changed_copy(to: Path, **settings: object) -> Path:
    """Copy the model, and replace these of its sentence-transformers settings."""
    shutil.copytree(folder_of_package(), to)
    file = to / "config_sentence_transformers.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))
    return to


def assert_close(vectors: object, expected: object) -> None:
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)  # type: ignore[arg-type]


def test_an_installed_package_is_a_model(encoder: SentenceTransformerEncoder) -> None:
    assert encoder.identity == EncoderIdentity(
        kind="sentence-transformers", name=PACKAGE, dimension=384, max_tokens=256
    )


def test_vectors_are_those_of_the_bare_model_in_the_order_of_the_texts(
    encoder: SentenceTransformerEncoder, bare: Any
) -> None:
    texts = [f"{text} {number}" for number in range(examples(40)) for text in TEXTS]
    vectors = encoder.encode(texts)
    assert vectors.dtype == np.float32
    assert_close(vectors, bare.encode(texts, batch_size=64))
    assert_close(encoder.encode_queries(TEXTS), bare.encode(TEXTS))


def test_odd_texts_get_unit_vectors_and_an_empty_list_gets_none(
    encoder: SentenceTransformerEncoder,
) -> None:
    vectors = encoder.encode(ODD)
    assert_close(np.linalg.norm(vectors, axis=1), np.ones(len(ODD)))
    assert_close(vectors, [encoder.encode([text])[0] for text in ODD])
    assert encoder.encode([]).shape == encoder.encode_queries([]).shape == (0, 384)


def test_text_beyond_the_last_token_of_the_model_changes_nothing_and_is_counted(
    encoder: SentenceTransformerEncoder,
) -> None:
    long_text = "word " * 10_000
    before = encoder.cut_texts
    assert_close(encoder.encode([long_text + "Vivaldi"]), encoder.encode([long_text]))
    assert encoder.cut_texts - before == 2
    # Of 256 tokens, two are the model's own.
    encoder.encode(["word " * 254, "word " * 255, "漢" * 254, "漢" * 255, "unintelligible " * 64])
    encoder.encode_queries([long_text])
    assert encoder.cut_texts - before == 5


def test_threads_that_share_an_encoder_get_their_own_vectors(
    encoder: SentenceTransformerEncoder,
) -> None:
    texts = [f"{text} {'x ' * number}" for number in range(examples(30)) for text in TEXTS]
    expected = encoder.encode(texts)
    with ThreadPoolExecutor(8) as threads:
        vectors = list(threads.map(lambda text: encoder.encode([text])[0], texts))
    assert_close(vectors, expected)


def test_a_model_with_other_weights_is_known_by_its_vectors(
    encoder: SentenceTransformerEncoder, tmp_path: Path
) -> None:
    from safetensors.numpy import load_file, save_file

    folder = changed_copy(tmp_path / "model")
    weights = load_file(folder / WEIGHTS)
    kept = tuple(map(tuple, encoder.encode(PROBE_TEXTS).tolist()))
    for layer, changed in (("none", ""), ("layer.5.output.dense.weight", "other vectors")):
        for name in weights:
            if name.endswith(layer):
                weights[name] = weights[name][::-1].copy()
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        other = open_encoder(str(folder))
        now = other.encode(PROBE_TEXTS)
        other.close()
        difference = differences(encoder.identity, kept, other.identity, now)
        assert changed in difference if changed else not difference


def test_the_prefixes_are_those_of_the_model_unless_others_are_given(
    tmp_path: Path, encoder: SentenceTransformerEncoder
) -> None:
    # With "passage" alone, the library puts nothing before documents.
    folder = str(changed_copy(tmp_path / "e5-base", prompts={"query": "Q: ", "passage": "P: "}))
    for given in ({}, {"query_prefix": "Find: ", "document_prefix": ""}):
        other = open_encoder(folder, **given)
        query, document = given.get("query_prefix", "Q: "), given.get("document_prefix", "P: ")
        assert (other.identity.query_prefix, other.identity.document_prefix) == (query, document)
        assert_close(other.encode_queries(["opera"]), encoder.encode([f"{query}opera"]))
        assert_close(other.encode(["opera"]), encoder.encode([f"{document}opera"]))
        other.close()


def test_a_copy_of_a_known_model_without_prompts_gets_its_prefixes(
    tmp_path: Path, encoder: SentenceTransformerEncoder
) -> None:
    named = open_encoder(str(changed_copy(tmp_path / "multilingual-e5-small")))
    assert_close(named.encode_queries(["opera"]), encoder.encode(["query: opera"]))
    assert_close(named.encode(["opera"]), encoder.encode(["passage: opera"]))
    named.close()


@pytest.mark.parametrize("device", ["cuda", "toaster"])
def test_a_device_that_does_not_exist_is_refused(device: str) -> None:
    import torch

    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(ArgumentError) as raised:
        open_encoder(PACKAGE, device=device)
    what, allowed = str(raised.value).splitlines()
    assert what.startswith(f"device is '{device}', which cannot be used: ")
    assert allowed == "Allowed: auto, cpu, cuda, or another one of torch on this machine"


@pytest.mark.parametrize(
    ("name", "damage"),
    [(WEIGHTS, None), (WEIGHTS, b"cut"), ("tokenizer.json", b""), ("modules.json", b"[]")],
)
def test_what_the_library_says_of_files_is_passed_on_with_advice(
    tmp_path: Path, name: str, damage: bytes | None
) -> None:
    folder = changed_copy(tmp_path / "model")
    (folder / name).unlink() if damage is None else (folder / name).write_bytes(damage)
    with pytest.raises(EncoderFilesError) as raised:
        open_encoder(str(folder))
    what, where, do = str(raised.value).splitlines()
    assert what.startswith("The files of the model cannot be loaded (")
    assert where == f"Where: {folder}"
    assert do == (
        "Do: Download the model again (hf download MODEL) or install it again. Models with code of "
        "their own are not supported."
    )


def test_missing_weights_are_not_invented(tmp_path: Path) -> None:
    folder = changed_copy(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 7}))
    with pytest.raises(EncoderFilesError) as raised:
        open_encoder(str(folder))
    assert raised.value.what == (
        "The files of the model lack 16 weights: encoder.layer.6.attention.output.LayerNorm.bias."
    )


def test_a_model_without_the_head_that_makes_no_vectors_is_loaded(
    tmp_path: Path, encoder: SentenceTransformerEncoder
) -> None:
    from safetensors.numpy import load_file, save_file

    folder = changed_copy(tmp_path / "model")
    weights = load_file(folder / WEIGHTS)
    remaining = {name: value for name, value in weights.items() if "pooler" not in name}
    assert len(remaining) < len(weights)
    save_file(remaining, folder / WEIGHTS, metadata={"format": "pt"})
    headless = open_encoder(str(folder))
    assert_close(headless.encode(TEXTS), encoder.encode(TEXTS))
    headless.close()


def test_a_call_on_a_closed_encoder_is_an_error() -> None:
    closed = open_encoder(PACKAGE)
    closed.close()
    with pytest.raises(EncoderUnavailableError) as raised:
        closed.encode(["a"])
    assert str(raised.value) == f"The encoder was closed.\nWhere: encoder {PACKAGE}"


@pytest.mark.long
def test_a_program_with_an_encoder_keeps_its_stderr_its_threads_and_needs_no_network(
    tmp_path: Path,
) -> None:
    script = f"""
import socket
def none(*given): raise AssertionError(given)
socket.socket.connect = socket.getaddrinfo = none
from arag_search.system.processes import usable_cores
from arag_search.vectors.encoders.choose import open_encoder
encoder = open_encoder({PACKAGE!r})
print(encoder.encode(["word " * 10_000, "a"]).shape)
import torch
assert torch.get_num_threads() <= usable_cores()
torch.set_num_threads(1)
open_encoder({PACKAGE!r})
assert torch.get_num_threads() == 1  # the choice of a program is never raised
"""
    process = subprocess.run(
        [sys.executable, "-W", "default", "-c", script],
        capture_output=True,
        text=True,
        env={"PATH": "", "HF_HOME": str(tmp_path), "OMP_DISPLAY_ENV": "TRUE"},
        timeout=PATIENCE_S,
    )
    errors = re.sub(
        r"OPENMP DISPLAY ENVIRONMENT BEGIN.*?ENVIRONMENT END", "", process.stderr, flags=re.S
    )
    assert (process.stdout, errors.strip()) == ("(2, 384)\n", "")
    policies = [line for line in process.stderr.splitlines() if "OMP_WAIT_POLICY" in line]
    assert policies
    assert all("PASSIVE" in line for line in policies)  # else two encoders disturb each other
