"""An agent as ours, with ripgrep and reads of lines in place of searches of an index.

Its files are the passages of the index, each under its id, with its title in the first line. So
finds, reads and citations are counted as with an index. Budgets are as in logical_read.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Mapping
from pathlib import Path

from arag_search.agent.calls import AgentTools
from arag_search.agent.loop import Agent, Ended
from arag_search.agent.models.base import ChatModel
from arag_search.agent.record import Step
from arag_search.agent.state import State
from arag_search.search.index import Index
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from arag_search.tools.tool import Tool
from bench import BenchError
from bench.ripgrep.tools import ReadLines, Ripgrep
from bench.rivals.answerer import Answerer, Built, Settings, prompt

_NAME = re.compile(r"[\w.()-][\w. ()-]*")


class Files(Built):
    """A folder with a file for each passage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


class FileTools(AgentTools):
    """The tools over the files of a folder."""

    def __init__(self, index: Index, preset: Preset, folder: Path) -> None:
        tools = [tool(index, preset, folder) for tool in (Ripgrep, ReadLines)]
        self._tools = {tool.name: tool for tool in tools}
        super().__init__(index, preset)

    def _over(self, index: Index) -> Mapping[str, Tool]:
        del index
        return self._tools


class RipgrepAgent(Answerer):
    """The loop of our agent, with two tools over files."""

    roles = ("ripgrep",)
    searches = ()

    def __init__(
        self, index: Index, preset: Preset, model: ChatModel, settings: Settings, built: Files
    ) -> None:
        super().__init__(index, preset, model, settings, built)
        self.toolbox = FileTools(index, preset, built.folder)
        self.schemas = tuple(self.toolbox.schemas)
        self._system = prompt(self.roles[0])

    @classmethod
    def preset_of(cls, name: str) -> Preset:
        """See Answerer."""
        changes = {"name": name, "description": name, "tools": (), "loop_guards": False}
        return load_preset(DEFAULT_PRESET).model_copy(update=changes)

    @classmethod
    def build(cls, index: Index, settings: Settings, model: str, folder: Path) -> Files:
        """Write a file for each passage."""
        del settings, model
        if shutil.which("rg") is None:
            raise BenchError("ripgrep is not installed.", do="Install it: apt install ripgrep")
        if not folder.exists():
            new = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            for passage in index.scan():
                if not _NAME.fullmatch(passage.id):
                    raise BenchError(
                        f'The id "{passage.id}" is no name of a file.', where=index.location
                    )
                (new / passage.id).write_text(f"{passage.title}\n{passage.content}\n", "utf-8")
            os.replace(new, folder)
        return Files(folder)

    def _steps(self, state: State) -> Generator[Step, None, Ended]:
        # No fixed course as other systems have: the model calls the tools.
        return Agent._steps(self, state)
