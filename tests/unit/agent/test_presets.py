"""Presets: those that ship, those of users, and the errors for wrong ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import signature
from pathlib import Path

import pytest
from pydantic import Field

from arag_search.agent.prompts import preset_fingerprint, prompt_text, system_prompt
from arag_search.cli.app import run
from arag_search.cli.ask import ask_command
from arag_search.cli.run import run_command
from arag_search.errors import ConfigError
from arag_search.search.index import Index
from arag_search.tools import registry
from arag_search.tools.preset import SYSTEM_PROMPTS, Preset
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset, preset_folder, preset_names
from arag_search.tools.tool import Tool
from arag_search.tools.toolbox import STALE_STEPS, tools_of
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import VIVALDI, index_of
from tests.support.semantic_indexes import vector_index

KEYS = (
    "name, description, tools, prompt, plan_first, max_loops, token_budget, loop_guards, "
    "max_result_tokens, full_text, operators, tool_description, matching, "
    "given, whole_up_to_tokens, relax, pointers, where, "
    "reproduces, replies"
)
OF_DOCUMENTS = "search_backend, multi_query, semantic_find, context_management, switcher"
ALL_KEYS = f"{KEYS}, {OF_DOCUMENTS}, memory_tokens"
TOOLS = (
    "logical_search, keyword_search, semantic_search, hybrid_search, naive_embedding_search, "
    "chunk_read, connector_search, connector_fetch, search, find, open, summarize"
)
COMPARE = "Do: Compare with a complete one: arag-search presets logical_read --yaml"
EXTEND = 'Do: Write "extends: logical_read" to take the missing keys from there.'
SHIPPED = [
    "agentic_hybrid", "agentic_logical", "agentic_rag", "agentic_rag_lexical_find",
    "agentic_rag_single_query", "agentic_rag_without_summarize", "agentic_switched", "arag_full",
    "arag_logical", "arag_naive", "arag_paper", "arag_without_chunk_read",
    "arag_without_keyword", "arag_without_semantic", "connector", "direct_answer",
    "logical_read", "logicalrag", "logicalrag_no_operators", "logicalrag_paper",
    "logicalrag_syntax_only", "memory_agent", "naive_rag", "oracle_evidence",
    "single_shot_search",
]  # fmt: skip
EXTENDING = {
    "agentic_hybrid": "logicalrag_paper",
    "arag_naive": "arag_paper",
    "arag_without_chunk_read": "arag_paper",
    "arag_without_keyword": "arag_paper",
    "arag_without_semantic": "arag_paper",
    "logicalrag_no_operators": "logicalrag_paper",
    "logicalrag_syntax_only": "logicalrag_paper",
}
STRICT = {*EXTENDING, "arag_paper", "logicalrag_paper", "naive_rag"}
SEVERAL_CALLS = {"arag_logical", "connector", "logical_read"}
DOCUMENTS = {name for name in SHIPPED if name.startswith(("agentic_", "oracle", "single"))} - {
    "agentic_hybrid"
}


def user_preset(folder: Path, *changes: tuple[str, str], drop: str = "") -> Path:
    """Write a user's preset file: logical_read with some lines changed, or one line dropped."""
    lines = (preset_folder() / "logical_read.yaml").read_text("utf-8").splitlines()
    lines = [old for old in lines if not drop or not old.startswith(f"{drop}:")]
    for key, line in changes:
        lines = [line if old.startswith(f"{key}:") else old for old in lines]
        if line not in lines:
            lines.append(line)
    path = folder / "mine.yaml"
    path.write_text("\n".join(lines), "utf-8")
    return path


def rejection(path: Path | str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_preset(path)
    return str(caught.value)


def test_these_presets_ship_and_are_named_after_their_files() -> None:
    assert preset_names() == SHIPPED
    assert DEFAULT_PRESET in SHIPPED
    for name in SHIPPED:
        assert load_preset(name).name == name


@pytest.mark.parametrize("name", sorted({*SHIPPED} - DOCUMENTS - {*EXTENDING} - {"memory_agent"}))
def test_every_file_has_every_key_in_the_same_order(name: str) -> None:
    lines = (preset_folder() / f"{name}.yaml").read_text("utf-8").splitlines()
    keys = ", ".join(line.split(":")[0] for line in lines if not line.startswith("#"))
    left_out = {"replies"} if name not in STRICT else set[str]()
    left_out |= set[str]() if name == "logical_read" else {"pointers"}
    assert keys == ", ".join(key for key in KEYS.split(", ") if key not in left_out)
    preset = load_preset(name)
    assert not preset.tools or (preset.calls_a_turn == 8) is (name in SEVERAL_CALLS)


@pytest.mark.parametrize("name", SHIPPED)
def test_only_a_preset_of_single_calls_asks_for_one_call_at_a_time(name: str) -> None:
    preset = load_preset(name)
    asks = re.search(r"\bone (tool call|search) at a time\b", system_prompt(preset))
    assert asks is None or preset.calls_a_turn == 1


def test_presets_of_documents_extend_the_one_that_has_every_key() -> None:
    lines = (preset_folder() / "agentic_rag.yaml").read_text("utf-8").splitlines()
    keys = ", ".join(line.split(":")[0] for line in lines if not line.startswith("#"))
    assert keys == f"{KEYS}, {OF_DOCUMENTS}".replace("replies, ", "").replace("pointers, ", "")
    for name in sorted(DOCUMENTS - {"agentic_rag"}):
        text = (preset_folder() / f"{name}.yaml").read_text("utf-8")
        assert "\nextends: agentic_rag\n" in text


def test_the_presets_of_documents_differ_as_the_paper_says() -> None:
    presets = {name: load_preset(name) for name in sorted(DOCUMENTS)}
    all_tools = ("search", "find", "open", "summarize")
    changed = {
        name: {
            key: value
            for key in OF_DOCUMENTS.split(", ")
            if (value := getattr(preset, key)) != Preset.model_fields[key].default
        }
        for name, preset in presets.items()
    }
    assert changed == {
        "agentic_logical": {"search_backend": "logical"},
        "agentic_rag": {},
        "agentic_rag_lexical_find": {"semantic_find": False},
        "agentic_rag_single_query": {"multi_query": False},
        "agentic_rag_without_summarize": {"context_management": False},
        "agentic_switched": {"switcher": True},
        "oracle_evidence": {},
        "single_shot_search": {"multi_query": False},
    }
    given = {name: preset.given for name, preset in presets.items() if preset.given != "none"}
    assert given == {"oracle_evidence": "evidence", "single_shot_search": "search"}
    for name, preset in presets.items():
        is_ours = name in ("agentic_logical", "agentic_switched")
        assert preset.reproduces == (None if is_ours else "AgenticRAG")
        assert preset.max_loops == 15
        assert preset.max_result_tokens == 12_000
        tools = () if preset.prompt == "single_shot" else all_tools
        assert preset.tools == (tools[:3] if name.endswith("without_summarize") else tools)
        assert preset.loop_guards is (name == "agentic_logical")


def test_the_presets_have_the_values_of_the_design() -> None:
    presets = {name: load_preset(name) for name in SHIPPED if name not in DOCUMENTS}
    tools = {name: list(preset.tools) for name, preset in presets.items()}
    assert tools == {
        "agentic_hybrid": ["hybrid_search"],
        "arag_full": ["keyword_search", "semantic_search", "chunk_read"],
        "arag_logical": ["logical_search", "semantic_search", "chunk_read"],
        "arag_naive": ["naive_embedding_search", "chunk_read"],
        "arag_paper": ["keyword_search", "semantic_search", "chunk_read"],
        "arag_without_chunk_read": ["keyword_search", "semantic_search"],
        "arag_without_keyword": ["semantic_search", "chunk_read"],
        "arag_without_semantic": ["keyword_search", "chunk_read"],
        "connector": ["connector_search", "connector_fetch"],
        "direct_answer": [],
        "logical_read": ["logical_search", "chunk_read"],
        "logicalrag": ["logical_search"],
        "logicalrag_no_operators": ["logical_search"],
        "logicalrag_paper": ["logical_search"],
        "logicalrag_syntax_only": ["logical_search"],
        "memory_agent": [],
        "naive_rag": [],
    }
    shows_passages = {"arag_naive", "arag_without_chunk_read", "naive_rag"}
    for name, preset in presets.items():
        plans = name.startswith("logicalrag") or name == "agentic_hybrid"
        assert preset.plan_first is plans
        assert preset.full_text is (plans or name in shows_passages)
        loops = {"naive_rag": 1, "memory_agent": 100}.get(name, 8 if plans else 15)
        assert preset.max_loops == loops
        assert preset.memory_tokens == (5_000 if name == "memory_agent" else 0)
        shows_text = preset.full_text or name == "connector"
        of_arag = name == "arag_paper" or EXTENDING.get(name) == "arag_paper"
        assert preset.max_result_tokens == (32_000 if of_arag else 12_000 if shows_text else 4_000)
        assert preset.asks_for_form is not (of_arag or name == "naive_rag")
        assert preset.matching == ("substring" if of_arag else "token")
        assert preset.replies == (preset.reproduces if name in STRICT else None)
        assert preset.token_budget == 128_000
        assert preset.given == ("passages" if name == "naive_rag" else "none")
        assert preset.loop_guards is (name == "logical_read")
        assert preset.where is False


def test_the_conditions_of_a_paper_differ_in_what_they_leave_out_or_change() -> None:
    for name, base, *keys in (
        ("logicalrag", "logicalrag_paper", "replies"),
        ("logicalrag_no_operators", "logicalrag_paper", "operators"),
        ("logicalrag_syntax_only", "logicalrag_paper", "tool_description"),
        ("agentic_hybrid", "logicalrag_paper", "tools", "prompt"),
        ("arag_naive", "arag_paper", "tools", "full_text"),
        ("arag_without_keyword", "arag_paper", "tools"),
        ("arag_without_semantic", "arag_paper", "tools"),
        ("arag_without_chunk_read", "arag_paper", "tools", "full_text"),
    ):
        of_base = load_preset(base).model_dump(exclude={"name", "description"})
        other = load_preset(name).model_dump(exclude={"name", "description"})
        assert [key for key in of_base if of_base[key] != other[key]] == keys, name


def test_a_prompt_names_only_the_tools_of_its_preset() -> None:
    for name in sorted(STRICT - {"naive_rag"}):
        preset = load_preset(name)
        named = {tool for tool in registry.TOOLS if f"- {tool} " in system_prompt(preset)}
        assert named <= {*preset.tools}, name
        assert (named == {*preset.tools}) is (preset.replies == "A-RAG")
        assert ("Answer:" in system_prompt(preset)) is (preset.replies == "LogicalRAG")
        assert not re.search(r"[{}]", system_prompt(preset))
    assert "apart" not in system_prompt(load_preset("arag_naive"))
    assert "apart" in system_prompt(load_preset("arag_paper"))


def test_a_tool_may_have_the_name_of_a_rag(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: arag_full\ntools: [keyword_search, read_chunk]\n")
    assert load_preset(file).tools == ("keyword_search", "chunk_read")
    file.write_text("extends: arag_full\ntools: [chunk_read, read_chunk]\n")
    with pytest.raises(ConfigError, match="each once"):
        load_preset(file)


def test_the_tools_of_a_preset_have_its_settings() -> None:
    index = Index(MemoryEngine([]), "memory")

    def preset_tools(name: str) -> dict[str, Tool]:
        return tools_of(load_preset(name), index)

    assert list(preset_tools("logical_read")) == ["logical_search", "chunk_read"]
    full, syntax = preset_tools("logicalrag"), preset_tools("logicalrag_syntax_only")
    assert full["logical_search"].max_result_tokens == 12_000
    assert len(syntax["logical_search"].description) < len(full["logical_search"].description) / 2
    properties = preset_tools("logicalrag_no_operators")["logical_search"].parameters["properties"]
    assert "default_operator" not in properties
    assert ", ".join(registry.TOOLS) == TOOLS
    index = vector_index(*VIVALDI)
    for name in registry.TOOLS:
        preset = load_preset("logical_read").model_copy(update={"tools": (name,)})
        assert [tool.name for tool in tools_of(preset, index).values()] == [name]


def test_arguments_of_metadata_are_offered_where_the_index_has_metadata() -> None:
    preset = load_preset("logical_read")
    for metadata in ({}, {"year": "number"}):
        tools = tools_of(preset, Index(MemoryEngine([], metadata=metadata), "memory"))
        arguments = tools["logical_search"].parameters["properties"]
        assert arguments.keys() > {"show", "after"}
        assert ("sort" in arguments) is bool(metadata)


def test_presets_without_guards_lack_the_arguments_that_help_on() -> None:
    index = Index(MemoryEngine([], metadata={"year": "number"}), "memory")
    tool = tools_of(load_preset("logicalrag"), index)["logical_search"]
    offered = ["query", "default_operator", "top_k", "offset"]
    assert list(tool.parameters["properties"]) == offered


def test_a_preset_file_of_a_user_is_loaded_by_its_path(tmp_path: Path) -> None:
    path = user_preset(tmp_path, ("name", "name: mine"), ("max_loops", "max_loops: 3"))
    assert (load_preset(path).name, load_preset(str(path)).max_loops) == ("mine", 3)


def test_a_prompt_of_a_user_is_found_beside_the_preset(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("Search well.\n", "utf-8")
    preset = load_preset(user_preset(tmp_path, ("prompt", "prompt: mine.md")))
    assert system_prompt(preset).startswith(
        "Search well.\n\nYou may make at most 15 turns of tool calls, up to 8 calls in each."
    )


def test_a_prompt_of_a_user_that_is_no_text_is_rejected(tmp_path: Path) -> None:
    path = user_preset(tmp_path, ("prompt", "prompt: mine.md"))
    where = f"Where: {tmp_path / 'mine.md'}, named in {path}"
    (tmp_path / "mine.md").write_bytes(b"\xff")
    assert rejection(path) == (
        "The prompt cannot be read ('utf-8' codec can't decode byte 0xff in position 0: invalid "
        f"start byte).\n{where}"
    )
    (tmp_path / "mine.md").write_text(" \n")
    assert rejection(path) == f"The prompt is empty.\n{where}"


def test_an_unknown_name_is_rejected_with_the_known_ones() -> None:
    assert rejection("logical") == (
        'There is no preset "logical".\n'
        f"Allowed: {', '.join(SHIPPED)}, or the path of a .yaml file\n"
        "Do: See them with: arag-search presets"
    )


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("max_steps: 8", 'Nearest: "max_loops".'),
        ("extend: logical_read", 'Nearest: "extends".'),
        ("colour: 8", f"Keys: {ALL_KEYS}, extends."),
    ],
)
def test_an_unknown_key_is_rejected_with_the_nearest_or_all(
    tmp_path: Path, line: str, hint: str
) -> None:
    key, value = line.split(": ")
    shown = value if value == "8" else f'"{value}"'
    path = user_preset(tmp_path, (key, line))
    assert rejection(path) == (
        "The preset has 1 problem.\n"
        f'1. key "{key}", {shown}: there is no such key. {hint}\n'
        f"Where: {path}\n{COMPARE}"
    )


def test_a_missing_key_is_named_with_what_it_allows(tmp_path: Path) -> None:
    path = user_preset(tmp_path, drop="tool_description")
    assert rejection(path) == (
        "The preset has 1 problem.\n"
        '1. key "tool_description" is missing. Allowed: "full" or "syntax".\n'
        f"Where: {path}\n{EXTEND}"
    )


def test_several_missing_keys_are_one_problem_after_all_others(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.yaml", "name: mine\nmax_step: 3\noperators: maybe\n")
    optional = (
        "whole_up_to_tokens", "relax", "pointers", "where",
        "reproduces", "replies",
    )  # fmt: skip
    known = ("name", "operators", *optional)
    missing = [key for key in KEYS.split(", ") if key not in known]
    *others, last = (f'"{key}"' for key in missing)
    assert rejection(path) == (
        "The preset has 3 problems.\n"
        '1. key "max_step", 3: there is no such key. Nearest: "max_loops".\n'
        '2. key "operators", "maybe". Allowed: true or false.\n'
        f"3. keys {', '.join(others)} and {last} are missing.\n"
        f"Where: {path}\n{EXTEND}"
    )


# extends


def written(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, "utf-8")
    return path


def test_a_preset_that_extends_another_takes_the_keys_that_it_leaves_out(tmp_path: Path) -> None:
    base = load_preset("logical_read")
    preset = load_preset(written(tmp_path / "short.yaml", "extends: logical_read\nmax_loops: 3\n"))
    assert preset == base.model_copy(update={"name": "short", "max_loops": 3})
    same_name = "extends: logical_read\nname: logical_read\n"
    copy = load_preset(written(tmp_path / "copy.yaml", same_name))
    assert (copy, preset_fingerprint(copy)) == (base, preset_fingerprint(base))


def test_a_chain_of_presets_is_followed_by_paths_relative_to_their_files(tmp_path: Path) -> None:
    written(tmp_path / "prompts" / "own.md", "Search well.")
    written(
        tmp_path / "prompts" / "lowest.yml", "extends: logicalrag\nprompt: own.md\nmax_loops: 2\n"
    )
    written(tmp_path / "middle.yaml", "extends: prompts/lowest.yml\nname: middle\nmax_loops: 3\n")
    written(tmp_path / "mine" / "top.yaml", "extends: ../middle.yaml\noperators: false\n")
    preset = load_preset(tmp_path / "mine" / "top.yaml")
    assert system_prompt(preset).startswith("Search well.")
    assert (preset.name, preset.max_loops, preset.operators, preset.plan_first) == (
        "top", 3, False, True,
    )  # fmt: skip


def test_presets_that_extend_each_other_are_rejected_with_the_ring(tmp_path: Path) -> None:
    start = written(tmp_path / "start.yaml", "extends: a.yaml\n")
    first = written(tmp_path / "a.yaml", "extends: sub/b.yaml\n")
    second = written(tmp_path / "sub" / "b.yaml", "extends: ../a.yaml\n")
    assert rejection(start).startswith(
        f"The presets extend each other in a cycle.\nWhere: {first} -> {second} -> "
        f"{tmp_path / 'sub' / '../a.yaml'}\n"
    )
    own = written(tmp_path / "own.yaml", "extends: own.yaml\n")
    assert f"Where: {own} -> {own}\n" in rejection(own)


@pytest.mark.parametrize(
    ("extends", "problem"),
    [
        ("", "null. Allowed: the name of a preset, or the path of a .yaml file."),
        ("[logical_read]", '["logical_read"]. Allowed: the name of a preset, or the path'),
        ("logical", 'There is no preset "logical".\nWhere: {path}, key "extends"\nAllowed: '),
        ("none.yaml", "The preset cannot be read (No such file or directory).\nWhere: {folder}"),
    ],
)
def test_a_preset_that_extends_what_is_no_preset_is_rejected(
    tmp_path: Path, extends: str, problem: str
) -> None:
    path = written(tmp_path / "mine.yaml", f"extends: {extends}\n")
    assert problem.format(path=path, folder=tmp_path) in rejection(path)


def test_a_problem_is_reported_at_the_file_that_has_it(tmp_path: Path) -> None:
    base = written(tmp_path / "base.yaml", "extends: logical_read\nmax_loops: 0\n")
    path = written(tmp_path / "mine.yaml", "extends: base.yaml\nmax_loops: 3\n")
    assert f"Where: {base}\n{COMPARE}" in rejection(path)
    path = written(tmp_path / "mine.yaml", "extends: logical_read\ntools: []\nmax_loops: x\n")
    assert '1. key "max_loops", "x". Allowed: a whole' in rejection(path)


def test_a_key_at_its_default_leaves_fingerprints_as_they_were() -> None:
    class Later(Preset):
        order: str = Field("score", description="A key of a later release.")

    preset = load_preset("logical_read")
    later = Later(**preset.model_dump())
    assert preset_fingerprint(later) == preset_fingerprint(preset)
    changed = later.model_copy(update={"order": "date"})
    assert preset_fingerprint(changed) != preset_fingerprint(preset)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('max_loops: "8"', '"8". Allowed: a whole number from 1 to 1000.'),
        ("max_loops: 0", "0. Allowed: a whole number from 1 to 1000."),
        ("max_loops: true", "true. Allowed: a whole number from 1 to 1000."),
        ("token_budget: 128k", '"128k". Allowed: a whole number, 1000 or more.'),
        ("max_result_tokens: 100", "100. Allowed: a whole number, 200 or more."),
        ("operators: 1", "1. Allowed: true or false."),
        ("pointers: 6", "6. Allowed: a whole number from 0 to 5."),
        ("given: words", '"words". Allowed: "none" or "evidence" or "search" or "passages".'),
        ("matching: words", '"words". Allowed: "token" or "substring".'),
        ("name:", "null. Allowed: a string that is not empty."),
        ('name: ""', '"". Allowed: a string that is not empty.'),
        ("description: 3", "3. Allowed: a string."),
        (f"max_loops: {10**30}", f"{10**30}. Allowed: a whole number from 1 to 1000."),
        ("operators: {1: 2}", "{1: 2}. Allowed: true or false."),
        ("prompt: other",
         '"other". Allowed: arag, arag_paper, logical_read, logicalrag, agentic_hybrid, '
         "naive_rag, direct_answer, agentic_rag, agentic_logical, single_shot, "
         "memory_agent, or the name of an .md file beside the preset."),
        ("tools: [logical_search, semantic]",
         f'"semantic". Allowed: a list of any of {TOOLS}, each once.'),
        ("tools: [chunk_read, chunk_read]",
         f'["chunk_read","chunk_read"]. Allowed: a list of any of {TOOLS}, each once.'),
        ("tools: chunk_read", f'"chunk_read". Allowed: a list of any of {TOOLS}, each once.'),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_what_is_allowed(
    tmp_path: Path, line: str, problem: str
) -> None:
    key = line.split(":")[0]
    path = user_preset(tmp_path, (key, line))
    assert rejection(path) == (
        f'The preset has 1 problem.\n1. key "{key}", {problem}\nWhere: {path}\n{COMPARE}'
    )


def test_the_fingerprint_covers_what_a_model_is_asked(tmp_path: Path) -> None:
    first = load_preset("logical_read")
    assert preset_fingerprint(first).startswith("logical_read-")
    same = user_preset(tmp_path, ("description", "description: Another sentence."))
    assert preset_fingerprint(load_preset(same)) == preset_fingerprint(first)
    (tmp_path / "copy.md").write_text(prompt_text("logical_read"), "utf-8")
    copied = load_preset(user_preset(tmp_path, ("prompt", "prompt: copy.md")))
    assert preset_fingerprint(copied) == preset_fingerprint(first)
    shorter = load_preset(user_preset(tmp_path, ("max_loops", "max_loops: 14")))
    others = {preset_fingerprint(shorter)}
    (tmp_path / "copy.md").write_text("Another prompt.", "utf-8")
    others.add(preset_fingerprint(copied))
    assert len({preset_fingerprint(first), *others}) == 3


@pytest.mark.parametrize("name", SYSTEM_PROMPTS)
def test_a_prompt_asks_the_model_to_admit_ignorance(name: str) -> None:
    preset = load_preset("logical_read").model_copy(update={"prompt": name, "max_loops": 5})
    assert "rather than a guess" in system_prompt(preset)
    assert "{max_loops}" not in system_prompt(preset)


# arag-search presets


PresetsCommand = Callable[..., str]


@pytest.fixture
def presets(capsys: pytest.CaptureFixture[str]) -> PresetsCommand:
    """Return a function that runs the command and returns its output."""

    def call(*arguments: str) -> str:
        capsys.readouterr()
        assert run(["presets", *arguments]) == 0
        return capsys.readouterr().out

    return call


def test_the_command_lists_presets_with_their_tools(presets: PresetsCommand) -> None:
    lines = presets().splitlines()
    width = max(map(len, SHIPPED)) + 2

    def named(name: str, text: str) -> str:
        return f"{name:<{width}}{text}"

    at = lines.index(named("direct_answer", "No retrieval: what the model knows by itself."))
    assert lines[at + 1] == named("", "no tools, prompt direct_answer")
    assert lines[at + 2 : at + 4] == [
        named(
            "logical_read",
            "Logical search with snippets, then reading in full; recommended without vectors. The "
            "default of ask, run and mcp.",
        ),
        named("", "logical_search, chunk_read; 15 turns, prompt logical_read"),
    ]
    about = "A-RAG with our replies: keywords, meaning, and reading in full."
    at = lines.index(named("arag_full", about))
    assert lines[at + 1] == named(
        "", "keyword_search, semantic_search, chunk_read; 15 turns, prompt arag; needs vectors"
    )
    assert lines[-4].strip() == "no tools, prompt single_shot"
    assert lines[-2:] == [f"Files: {preset_folder()}", "Explain one with: arag-search presets NAME"]


def test_the_command_explains_a_preset_key_by_key_with_its_prompt(presets: PresetsCommand) -> None:
    text = presets("logicalrag")
    assert "\nmax_loops: 8\n    Turns with tools before an answer is forced." in text
    assert "\ntools: [logical_search]\n" in text
    assert "\nloop_guards: false\n" in text
    assert text.endswith(f"\n\n{system_prompt(load_preset('logicalrag'))}\n")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_preset_printed_as_yaml_can_be_saved_and_used(
    tmp_path: Path, presets: PresetsCommand, name: str
) -> None:
    saved = load_preset(written(tmp_path / "saved.yaml", presets(name, "--yaml")))
    assert (saved, preset_fingerprint(saved)) == (
        load_preset(name),
        preset_fingerprint(load_preset(name)),
    )


def test_a_preset_with_odd_characters_and_a_prompt_of_its_own_survives_yaml(
    tmp_path: Path, presets: PresetsCommand
) -> None:
    written(tmp_path / "mine" / "own.md", "Search well.")
    mine = 'extends: naive_rag\nprompt: own.md\nname: "no: \'#é\\u2028\\x07"\ntools: []\n'
    path = written(tmp_path / "mine" / "odd.yaml", mine)
    saved = load_preset(written(tmp_path / "saved.yaml", presets(str(path), "--yaml")))
    assert saved == load_preset(path)
    assert saved.name == "no: '#é\u2028\x07"


@pytest.mark.parametrize("option", [["--yaml"], ["--index", "my-index"]])
def test_yaml_and_tools_are_of_one_preset(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["presets", *option]) == 1
    assert f"{option[0]} has no effect here." in capsys.readouterr().err


def test_the_preset_of_a_command_is_the_default_one() -> None:
    for command in (run_command, ask_command):
        (option,) = signature(command).parameters["preset"].annotation.__metadata__
        assert f"[default: {DEFAULT_PRESET}, " in option.help


def test_presets_of_our_own_have_their_own_instructions_and_no_plan() -> None:
    for name in SHIPPED:
        preset = load_preset(name)
        if preset.reproduces is not None:
            assert preset.prompt != "logical_read"
        elif name not in ("connector", "agentic_logical", "agentic_switched"):
            assert (preset.prompt, preset.plan_first) == ("logical_read", False)
            for words in ("counts as read", "join them with OR", "(implied)", "contradict"):
                assert words in system_prompt(preset)
            number = ("", "One", "Two", "Three")[STALE_STEPS]
            assert f"{number} that bring nothing new" in system_prompt(preset)


def test_the_command_shows_the_tools_over_an_index_as_a_model_gets_them(
    presets: PresetsCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = index_of(*VIVALDI)
    monkeypatch.setattr("arag_search.cli.presets.open_index", lambda *_, **__: index)
    tools = tools_of(load_preset("logical_read"), index)
    text = presets("logical_read", "--index", "my-index")
    for name, tool in tools.items():
        assert f"\n\nThe tool {name}({', '.join(tool.parameters['properties'])}):\n\n" in text
        assert f"\n\n{tool.description}\n" in text
