"""The systems by name, with their settings. Their modules are imported when a suite names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from arag_search.errors import ConfigError
from arag_search.search.index import Index
from arag_search.system.yaml_file import numbered
from bench.rivals import RivalName
from bench.rivals.answerer import Answerer, Built, Settings

_CLASSES: dict[RivalName, str] = {
    "faithful_rag": "FaithfulRag",
    "linear_rag": "LinearRag",
    "ma_rag": "MaRag",
    "ragenta": "Ragenta",
}
"""The class of each system, in the module of its name."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A system with its settings."""

    name: str
    answerer: type[Answerer[Any, Any]]
    settings: Settings

    @staticmethod
    def of(name: RivalName, changes: dict[str, Any]) -> Rival:
        """Return a system with some settings changed. Raises ConfigError naming what is wrong."""
        answerer = getattr(import_module(f"{__package__}.{name}"), _CLASSES[name])
        known = answerer.settings_type
        try:
            return Rival(name, answerer, known.model_validate(changes))
        except ValidationError as error:
            problems = [f"{of['loc'][0]}: {of['msg']}." for of in error.errors(include_url=False)]
            allowed = ", ".join(known.model_fields)
            raise ConfigError(numbered("entry", problems), where="set", allowed=allowed) from error

    def usual_calls(self) -> Iterator[tuple[str, int]]:
        """Yield the role and the passages of each request of a usual question."""
        return self.answerer.usual_calls(self.settings)

    def build(self, index: Index, model: str, folder: Path) -> Built:
        """Build what the system needs beside an index, unless the folder has it."""
        return self.answerer.build(index, self.settings, model, folder)
