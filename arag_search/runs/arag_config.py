"""The settings of A-RAG's repository (its ``configs/*.yaml``), as settings of a run here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arag_search.errors import ConfigError
from arag_search.system.yaml_file import numbered, read_mapping
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import changed_preset

INDEX_NAME = "arag-search"
"""The name of our index in A-RAG's ``index_dir``, which may hold A-RAG's own."""

_SECTIONS = "the sections llm, embedding, agent, data and output"
_INSTEAD = {
    "llm.api_key": "set ARAG_API_KEY",
    "llm.max_tokens": "the endpoint's limit holds",
    "embedding": "arag-search embed makes the vectors, with --encoder and --device",
    "agent.verbose": "arag-search view DIR ID prints the steps of a question",
    "output": "`out` names the folder",
}
"""What there is in place of settings that have no counterpart."""


class _Section(BaseModel):
    """A section of the file. Settings without a counterpart are kept apart, in model_extra."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class LlmSettings(_Section):
    """The model: its options have the same names here."""

    model: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None


class _AgentSettings(_Section):
    """The bounds of the loop."""

    max_loops: int | None = None
    max_token_budget: int | None = None


class _DataSettings(_Section):
    """The files."""

    chunks_file: Path | None = None
    questions_file: Path | None = None
    index_dir: Path | None = None


class AragConfig(_Section):
    """A file of settings. Paths in it are relative to the working folder, as in A-RAG."""

    file: Path
    llm: LlmSettings = Field(default_factory=LlmSettings)
    agent: _AgentSettings = Field(default_factory=_AgentSettings)
    data: _DataSettings = Field(default_factory=_DataSettings)

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a file. Raises ConfigError naming every setting that is wrong."""
        values = read_mapping(file, "configuration", holds="sections", allowed=_SECTIONS)
        try:
            return cls.model_validate({**values, "file": file})
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, item['loc']))}, {item['input']!r}: {item['msg']}."
                for item in error.errors()
            ]
            raise ConfigError(
                numbered("configuration", problems), where=str(file), allowed=_SECTIONS
            ) from error

    def applied(self, preset: Preset) -> Preset:
        """Return a preset with the bounds of the file. Raises ConfigError for those not allowed."""
        agent = self.agent
        bounds = {"max_loops": agent.max_loops, "token_budget": agent.max_token_budget}
        given = {key: value for key, value in bounds.items() if value is not None}
        return changed_preset(preset, given, str(self.file))

    def note(self) -> str:
        """Return which settings have no counterpart, and what there is instead; empty if there are
        none."""
        settings = _flat(self.model_extra or {})
        for name in ("llm", "agent", "data"):
            settings += _flat({name: getattr(self, name).model_extra})
        named: dict[str, list[str]] = {}
        for key in settings:
            section = key.partition(".")[0]
            instead = _INSTEAD.get(key, _INSTEAD.get(section, "unknown here"))
            named.setdefault(instead, []).append(key)
        if not named:
            return ""
        parts = [f"{', '.join(keys)} ({instead})" for instead, keys in named.items()]
        return f"Settings of {self.file} without a counterpart: {'; '.join(parts)}."


def _flat(sections: Mapping[str, Any]) -> list[str]:
    names: list[str] = []
    for section, values in sections.items():
        if isinstance(values, dict):
            names += [f"{section}.{key}" for key in cast(dict[str, object], values)]
        else:
            names.append(section)
    return names
