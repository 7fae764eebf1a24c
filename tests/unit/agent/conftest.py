"""An agent over three passages in memory."""

from __future__ import annotations

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply
from arag_search.search.index import Index
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import load_preset
from tests.support.asking import CHUNKS, QUESTION, Ask, AskedQuestion
from tests.support.oracle.engine import MemoryEngine
from tests.support.scripted_model import ScriptedModel


@pytest.fixture
def index() -> Index:
    return Index(MemoryEngine(CHUNKS), "memory")


@pytest.fixture(scope="module")
def preset() -> Preset:
    return load_preset("logical_read")


@pytest.fixture
def ask(index: Index, preset: Preset) -> Ask:
    """Return a function that asks the question of a scripted model; keywords change the preset."""

    def ask_script(*script: ModelReply | Exception, **changes: object) -> AskedQuestion:
        model = ScriptedModel(script)
        agent = Agent(index, preset.model_copy(update=changes), model)
        return AskedQuestion(agent.ask(QUESTION, "q1"), model)

    return ask_script
