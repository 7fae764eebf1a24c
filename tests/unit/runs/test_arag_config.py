"""A-RAG's configs/*.yaml: what is taken, what has no counterpart, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from arag_search.errors import ConfigError
from arag_search.runs.arag_config import AragConfig
from arag_search.tools.preset_files import load_preset

TEXT = """
llm:
  model: gpt-5-mini
  api_key: "secret"
  temperature: 0.0
  max_tokens: 16384
  reasoning_effort: "medium"
embedding:
  model: "Qwen/Qwen3-Embedding-0.6B"
  device: "cuda:0"
agent:
  max_loops: 7
  max_token_budget: 64000
  verbose: false
  colour: red
data:
  chunks_file: "data/chunks.json"
  questions_file: "data/questions.json"
  index_dir: "data/index"
output:
  results_dir: "results/"
speed: 3
"""


def loaded(folder: Path, text: str) -> AragConfig:
    file = folder / "musique.yaml"
    file.write_text(text)
    return AragConfig.load(file)


def test_settings_with_a_counterpart_are_taken(tmp_path: Path) -> None:
    config = loaded(tmp_path, TEXT)
    assert config.llm.model_dump(include={"model", "base_url", "temperature"}) == {
        "model": "gpt-5-mini", "base_url": None, "temperature": 0.0,
    }  # fmt: skip
    assert config.data.index_dir == Path("data/index")
    preset = config.applied(load_preset("arag_full"))
    assert (preset.max_loops, preset.token_budget) == (7, 64_000)
    assert preset.model_copy(update={"max_loops": 15, "token_budget": 128_000}) == load_preset(
        "arag_full"
    )


def test_settings_without_a_counterpart_are_named_and_no_secret_is(tmp_path: Path) -> None:
    config = loaded(tmp_path, TEXT)
    assert config.note() == (
        f"Settings of {config.file} without a counterpart: embedding.model, embedding.device "
        "(arag-search embed makes the vectors, with --encoder and --device); "
        "output.results_dir (`out` names the folder); speed, agent.colour (unknown here); "
        "llm.api_key (set ARAG_API_KEY); llm.max_tokens (the endpoint's limit holds); "
        "agent.verbose (arag-search view DIR ID prints the steps of a question)."
    )


def test_a_file_with_nothing_else_has_no_note(tmp_path: Path) -> None:
    config = loaded(tmp_path, "agent: {max_loops: 5}\n")
    assert config.note() == ""
    assert config.applied(load_preset("arag_full")).token_budget == 128_000


def test_wrong_values_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, "llm: {temperature: warm}\nagent: [15]\n")
    lines = str(caught.value).splitlines()
    assert lines[0] == "The configuration has 2 problems."
    assert lines[1].startswith("1. llm.temperature, 'warm': ")
    assert lines[2].startswith("2. agent, [15]: ")
    assert lines[4] == "Allowed: the sections llm, embedding, agent, data and output"
    with pytest.raises(ConfigError, match='key "max_loops", 0'):
        loaded(tmp_path, "agent: {max_loops: 0}").applied(load_preset("arag_full"))
