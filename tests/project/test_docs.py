"""The guides are true: their blocks run, and their commands, paths, links and tables exist."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from arag_search import QueryError, parse
from arag_search.cli.app import run
from arag_search.mcp_server.access import read_grants
from arag_search.query.fields import Schema
from arag_search.query.filters import parse_filter
from arag_search.runs.prices import Prices
from arag_search.tools.preset_files import load_preset, preset_names
from bench.__main__ import BENCHES
from bench.report.verify import read_expected
from index_jobs.sources.registry import FORMATS
from tests.support.commands import SAMPLE
from tests.support.guides import (
    GUIDES,
    ROOT,
    Block,
    blocks_of,
    commands_of,
    exit_code_of,
    guide_text,
    links_of,
    prose_of,
    rows_of,
    run_console,
    spans_of,
)

OPERATORS = "opensearch/README.md"
TESTS = "uv run --extra all --group dev pytest"
SLOW = "takes minutes, and reads data that is not in the repository"
MARKS: Mapping[tuple[str, str], str] = {
    ("README.md", "uv tool install '.[mcp,files]'"):
        "it installs a tool for its user; tests/mcp/test_folders.py does so in an empty home",
    ("README.md", "arag-search search ~/reports"): "it needs a folder of yours",
    ("README.md", "arag-search view sample-index"):
        "it serves until Ctrl-C; tests/viewer/test_search_page.py does so",
    ("README.md", f"pip install uv && {TESTS}"): "it is what runs the tests",
    ("arag_search/README.md", "uv run python -m arag_search.engines.lucene.java"):
        "it rewrites a file of the repository; a test rebuilds the jar in another folder",
    ("arag_search/mcp_server/README.md", "arag-search install claude-code my-index"):
        "it changes the settings of clients; tests/cli runs it on copies",
    ("arag_search/mcp_server/README.md", "arag-search mcp wiki=/path/to/my-index"):
        "a server runs until its client ends it; tests/mcp starts servers",
    ("arag_search/mcp_server/README.md", "export SEARCH_TOKEN=$(openssl rand -hex 32)"):
        "a server runs until it is stopped; tests/mcp starts servers",
    ("arag_search/mcp_server/README.md", "arag-search index reports.jsonl --to my-index"):
        "the reports are yours, and a server runs until it is stopped; tests/mcp starts servers",
    ("arag_search/mcp_server/README.md", "arag-search mcp /path/to/my-index --preset connector"):
        "a server runs until it is stopped; tests/mcp starts servers",
    ("arag_search/mcp_server/README.md", "2026-11-29"): "a line of a server that runs",
    ("arag_search/search/README.md", "arag-search view sample-index"):
        "it serves until Ctrl-C; tests/viewer/test_search_page.py does so",
    ("arag_search/search/README.md", "arag-search --install-completion"):
        "it changes the start-up file of a shell",
    ("configs/README.md", "arag-search ask sample-index 'Who wrote Evangeline?' --model gpt"):
        "needs a model key or a local server",
    ("configs/README.md", "arag-search score sample-run --judge gpt-5-mini"): "needs a model key",
    ("configs/README.md", "import json, pathlib, pandas"):
        "needs pandas, which the project does not install",
    ("configs/README.md", "arag-search run --config configs/musique.yaml"):
        "needs files of A-RAG and a model key; tests/cli/test_arag_files.py runs such commands",
    ("index_jobs/README.md", "arag-search sync /data/my-index --watch"):
        "it runs until it is stopped; tests/jobs/test_watching.py runs it",
    ("index_jobs/README.md", "0 3 * * *"): "the crontab is yours",
    ("index_jobs/README.md", "ray start --head"): "needs a cluster",
    ("index_jobs/VECTORS.md", "hf download sentence-transformers/all-MiniLM-L6-v2"):
        "downloads gigabytes",
    (OPERATORS, "printf 'ARAG_MCP_TOKEN="):
        "starts services; tests/docker/test_one_node.py runs these files",
    (OPERATORS, "printf 'ARAG_SEARCH_PASSWORD="):
        "starts services; tests/docker/test_three_nodes.py runs the file without TLS and roles",
    (OPERATORS, "export OPENSEARCH_USERNAME=arag_build"): "needs the security plugin",
    ("bench/README.md", "hf download xlangai/BRIGHT"): "the first command of each pair downloads",
    ("bench/README.md", "python -m bench verify"): SLOW,
    ("bench/studies/ablations.md", "python -m bench ablate bench/suites/logicalrag_interface.yaml"):
        "reads data that is not in the repository, and the second command needs a model key",
    ("bench/studies/agent.md", "python -m bench ablate bench/suites/rules.yaml"):
        "takes half a minute, and reads data that is not in the repository",
    ("bench/studies/counterfactual.md", "python -m bench counterfactual"):
        "reads data that is not in the repository",
    ("bench/studies/gold_chain.md", "python -m bench ablate bench/suites/gold_chain.yaml"):
        "takes up to an hour, and reads data that is not in the repository",
    ("bench/studies/growth.md", "python -m bench scale"): "takes hours",
    ("bench/studies/interfaces.md", "python -m bench ablate bench/suites/recorded_interfaces.yaml"):
        "reads data that is not in the repository",
    ("bench/studies/interfaces.md", "python -m bench counterfactual"):
        "asks a model, and reads data that is not in the repository",
    ("bench/studies/opensearch.md", "python -m bench speed --passages"): "takes minutes",
    ("bench/studies/opensearch.md", "python -m bench crowd"): "takes minutes",
    ("bench/studies/papers.md", "uv sync --extra all"):
        "downloads data, and the last command needs a key and costs money",
    ("bench/studies/papers.md", "arag-search index kilt_knowledgesource.json"):
        "needs KILT's Wikipedia, a server and a key",
    ("bench/studies/papers.md", "python -m bench prepare browsecomp_plus"):
        "downloads data, needs a key and costs money",
    ("bench/studies/papers.md", "python -m bench ablate bench/suites/recorded_arag.yaml"):
        "reads data that is not in the repository",
    ("bench/studies/peers.md", "python -m bench lookup"):
        "needs packages of Debian, ripgrep and minutes",
    ("bench/studies/replay.md", "uv venv --python 3.12"): "downloads 6 GB, and needs a JDK",
    ("bench/studies/retrieval.md", "python -m bench retrieval"): SLOW,
    ("bench/studies/ripgrep.md", "apt-get install ripgrep"):
        "needs ripgrep and two packages, and takes minutes",
    ("bench/studies/ripgrep.md", "python -m bench ablate bench/suites/ripgrep.yaml"):
        "asks a model",
    ("bench/studies/rivals.md", "python -m bench ablate bench/suites/arag_rivals.yaml"):
        "reads data that is not in the repository; the second command needs a key and costs money",
    ("bench/studies/sets.md", "python -m bench sets --limit ../shared/data/limit"): SLOW,
    ("bench/studies/speed.md", "python -m bench speed"): SLOW,
    ("bench/studies/speed.md", "JAVA_HOME=/path/to/jdk python -m bench speed --only building"):
        "needs a jar of 117 MB, and a JDK",
    ("bench/studies/speed.md", "uv venv core"): "it installs into an environment of its own",
}  # fmt: skip
"""The blocks that no test runs, by guide and beginning, with the reason that the guide gives."""

RUN_ON_A_NODE = ("console on a node", "http", "sh certificates")
"""Blocks that tests/opensearch/test_guide.py runs."""

METADATA = {
    "year": "number", "lang": "keyword", "kind": "keyword", "published": "date", "draft": "boolean"
}  # fmt: skip
LANGUAGE = "arag_search/query/README.md"


# Blocks


def python(block: Block) -> None:
    exec(compile(block.text, str(block), "exec"), {})


def yaml_file(block: Block, load: Callable[[Path], object]) -> None:
    path = Path("from-a-guide.yaml")
    path.write_text(block.text, "utf-8")
    load(path)


def shell(block: Block) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "-euc", block.text], env={**os.environ, "PATH": path}, check=True)


def access_file(path: Path) -> None:
    schema = Schema({"acl": "keyword", "deny": "keyword"})
    read_grants(path, lambda filter: parse_filter(filter, schema))


RUNNERS: Mapping[str, Callable[[Block], object]] = {
    "console": run_console,
    "console exit 1": run_console,
    "console exit 2": run_console,
    "json": lambda block: json.loads(block.text),
    "jsonl": lambda block: [json.loads(line) for line in block.text.splitlines()],
    "python": python,
    "sh": shell,
    "toml": lambda block: tomllib.loads(block.text),
    "yaml preset": lambda block: yaml_file(block, load_preset),
    "yaml access": lambda block: yaml_file(block, access_file),
    "yaml prices": lambda block: yaml_file(block, Prices.load),
}
"""The runner of a block, by the words behind its fence. A block "text" is what the block
right above it prints."""

VARYING = re.compile(r"\d[\d,.]*(?= (?:ms|s|min|h|bytes|[kMG]B)\b)|\d+(?:\.\d+)+|(?<=\s)/\S+")
"""Times and sizes, versions, and paths of the machine."""


def is_shown(text: str, output: str) -> bool:
    """Return whether a text is an output, except for what varies and lines left out (``...``)."""
    lines, output = VARYING.sub("0", text).splitlines(), VARYING.sub("0", output)
    pattern = ["(?:.*\n)*?" if line == "..." else re.escape(f"{line}\n") for line in lines]
    return re.fullmatch("".join(pattern), output) is not None


@pytest.fixture(scope="module")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the index that README builds and the other guides use."""
    index = tmp_path_factory.mktemp("guides") / "sample-index"
    metadata = "year:number,kind:keyword"
    assert run(["index", SAMPLE, "--to", str(index), "--metadata", metadata]) == 0
    return index


@pytest.mark.parametrize("guide", GUIDES)
def test_the_blocks_of_a_guide_run_in_order_and_print_what_it_shows(
    guide: str,
    sample_index: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "arag_search").symlink_to(ROOT / "arag_search")
    if guide != "README.md":
        shutil.copytree(sample_index, tmp_path / "sample-index")
    monkeypatch.chdir(tmp_path)
    outputs: tuple[str, ...] = ()
    for block in blocks_of(guide):
        if block.kind == "text" and not block.reason:
            assert any(is_shown(block.text, output) for output in outputs), (str(block), outputs)
        elif not block.reason and not (guide == OPERATORS and block.kind in RUN_ON_A_NODE):
            RUNNERS[block.kind](block)
            outputs = capsys.readouterr()
        else:
            outputs = ()


def test_every_block_that_no_test_runs_carries_a_mark_with_its_reason() -> None:
    marked = [block for guide in GUIDES for block in blocks_of(guide) if block.reason]
    assert len(marked) == len(MARKS)
    for block, ((guide, beginning), reason) in zip(marked, MARKS.items(), strict=True):
        assert (block.guide, block.reason) == (guide, reason)
        assert block.text.startswith(beginning)


@pytest.mark.parametrize("guide", GUIDES)
def test_every_block_is_fenced_and_every_fence_and_mark_belongs_to_a_block(guide: str) -> None:
    blocks, text = blocks_of(guide), guide_text(guide)
    assert text.count("```") == 2 * len(blocks)
    assert text.count("<!-- not run") == sum(bool(block.reason) for block in blocks)
    assert not re.findall(r"\n\n {4,}(?![-*\d])\S.*", prose_of(guide))


def test_the_two_one_line_commands_are_in_the_readme_and_in_ci() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("uv run arag-search demo", TESTS):
        assert f"pip install uv && {command}" in guide_text("README.md")
        assert command in ci


def test_the_readme_takes_five_minutes() -> None:
    assert len(guide_text("README.md").splitlines()) <= 200
    assert len(guide_text("bench/README.md").splitlines()) <= 250


PUBLIC_MODULES = {"arag_search", "index_jobs", "arag_search.errors"}
"""What the program of a user imports; all else may move."""


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_imports_nothing_deeper_than_what_is_public(guide: str) -> None:
    imported = re.compile(r"^ *(?:from|import) ((?:arag_search|index_jobs)[\w.]*)", re.MULTILINE)
    blocks = (block for block in blocks_of(guide) if block.kind == "python")
    assert {name for block in blocks for name in imported.findall(block.text)} <= PUBLIC_MODULES


# Commands, paths and names


@pytest.fixture(scope="module")
def help_of() -> Callable[[str], str]:
    """Return a function that prints the help of a command, once for all guides."""
    import contextlib
    import functools
    import io

    @functools.cache
    def help_text(command: str) -> str:
        output = io.StringIO()
        code: object = 0
        with contextlib.redirect_stdout(output):
            try:
                code = exit_code_of([*command.split(), "--help"])
            except SystemExit as exit_info:
                code = exit_info.code
        return "" if code else output.getvalue()

    return help_text


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_that_a_guide_names_exists_with_its_options(
    guide: str, help_of: Callable[[str], str]
) -> None:
    for words in commands_of(guide):
        begin = words[:2] if words[0] == "arag-search" else words[:4]
        if words[1:2] == ["opensearch"]:
            begin = words[:3]
        help_text = help_of(" ".join(begin))
        assert help_text, f"there is no command {' '.join(begin)}"
        for option in re.findall(r"(?<=\s)--[\w-]+", " ".join(words)):
            assert re.search(rf"{option}(?![\w-])", help_text), words


@pytest.mark.parametrize("guide", GUIDES)
def test_every_path_and_module_that_a_guide_names_exists(guide: str) -> None:
    places = (ROOT, (ROOT / guide).parent)
    names = "|".join(re.escape(path.name) for path in ROOT.iterdir() if path.name != ".venv")
    path = re.compile(rf"(?:{names})(?:/[\w./*-]*)?|[\w-]+/[\w./*-]+\.(?:py|md|java|json|ya?ml)")
    module = re.compile(r"(?:arag_search|index_jobs|bench)(?:\.\w+)+")
    texts = (*spans_of(guide), *(block.text for block in blocks_of(guide) if not block.reason))
    for word in {word for text in texts for word in text.split()}:
        if path.fullmatch(word):
            assert any(list(place.glob(word.rstrip("/"))) for place in places), word
        elif module.fullmatch(word):
            assert is_real(word), word


def is_real(name: str) -> bool:
    """Return whether a dotted name is a module, or an attribute of a module."""
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return bool(module) and hasattr(importlib.import_module(module), attribute)
    return True


@pytest.mark.parametrize("guide", GUIDES)
def test_every_link_of_a_guide_leads_to_a_file_and_a_heading_that_exist(guide: str) -> None:
    for link in links_of(guide):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / guide).parent / path).resolve() if path else ROOT / guide
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target.relative_to(ROOT).as_posix()), link


def anchors_of(guide: str) -> set[str]:
    """Return the anchors of the headings of a guide."""
    headings = re.findall(r"^#+ (.+)$", prose_of(guide), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_preset_format_and_tool_of_the_command_line_is_in_its_guide(
    help_of: Callable[[str], str],
) -> None:
    def choices(command: str, option: str) -> set[str]:
        (names,) = re.findall(rf"{option} <([^>]+)>", help_of(command))
        return set(re.sub(r"\s", "", names).split("|"))

    assert {*FORMATS} <= {*spans_of("index_jobs/README.md")}
    assert choices("arag-search search", "--tool") <= {*spans_of("arag_search/search/README.md")}
    assert set(preset_names()) <= {*spans_of("configs/README.md")}


def test_every_variable_that_the_package_reads_is_in_a_guide() -> None:
    guides = "\n".join(map(guide_text, GUIDES))
    sources = (path.read_text("utf-8") for path in (ROOT / "arag_search").rglob("*.py"))
    names = {
        name
        for source in sources
        for name in re.findall(r'"((?:ARAG|OPENAI|OPENSEARCH)_[A-Z_]+)"', source)
    }
    assert "ARAG_MODEL" in names
    assert {name for name in names if f"`{name}`" not in guides} == set()


# The query language


@pytest.mark.parametrize("default_operator", ["OR", "AND"])
def test_the_queries_of_the_guide_are_understood_as_it_says(default_operator: str) -> None:
    head = {"OR": "query", "AND": "query, with AND as the default"}[default_operator]
    rows = rows_of(LANGUAGE, head, "read as")
    assert rows
    for query, understood in rows:
        parsed = parse(query, Schema(METADATA), default_operator=default_operator)
        assert parsed.text == understood, query


def test_the_queries_that_the_guide_calls_wrong_are_corrected_as_it_says() -> None:
    rows = rows_of(LANGUAGE, "query", "what is wrong", "corrected")
    assert rows
    for query, _, correction in rows:
        with pytest.raises(QueryError) as caught:
            parse(query, Schema(METADATA))
        assert (caught.value.mended or "") == correction, query


PUBLISHED_SUITES = [
    (Path(expected.command.split()[1]).stem, guide)
    for expected in read_expected().values()
    if expected.command.startswith("ablate ")
    for guide in expected.guides
    if guide.startswith("bench/studies/")
]
"""Suites whose figures are verified, with the study that states them."""

LIMITS: Mapping[str, Callable[[int], str]] = {
    "characters": lambda count: " " * (count - 1) + "a",
    "words, phrases and conditions": lambda count: " ".join(
        f"a{number}" for number in range(count)
    ),
    "words in all of its phrases": lambda count: f'"{"a " * count}"',
    "prefixes": lambda count: " ".join(f"abcd{number}*" for number in range(count)),
    "levels of parentheses": lambda count: "(" * count + "a OR b" + ")" * count,
    "a slop of": lambda count: f'"a b"~{count}',
}
"""Queries that reach a limit of the guide, by the words for the limit."""


@pytest.mark.parametrize("words", LIMITS)
def test_a_query_may_reach_each_limit_of_the_guide_and_not_exceed_it(words: str) -> None:
    number = r"([\d,]+)"
    form = rf"- {words} {number}" if words.endswith(" of") else rf"- {number} {words}"
    (figure,) = re.findall(form, guide_text(LANGUAGE))
    limit = int(figure.replace(",", ""))
    parse(LIMITS[words](limit))
    with pytest.raises(QueryError):
        parse(LIMITS[words](limit + 1))


# The bench


def test_every_bench_is_in_the_guide() -> None:
    commands = commands_of("bench/README.md")
    named = {words[3] for words in commands if words[2:3] == ["bench"] and words[3:]}
    assert BENCHES.keys() == named


@pytest.mark.parametrize(
    ("suite", "guide"), sorted({*PUBLISHED_SUITES, ("gold_chain", "bench/studies/gold_chain.md")})
)
def test_every_measure_by_which_a_suite_compares_is_in_its_published_table(
    suite: str, guide: str
) -> None:
    content = yaml.safe_load((ROOT / "bench" / "suites" / f"{suite}.yaml").read_text("utf-8"))
    comparison = content["comparison"]
    heads = re.findall(r"^\|(.+)\|\n\|[ |-]+\|$", guide_text(guide), re.MULTILINE)
    for measure in (comparison["primary"], *comparison["secondary"]):
        assert any(re.search(rf"\b{measure}(?![\w@])", head) for head in heads), measure


def test_every_file_of_results_is_named_in_a_guide() -> None:
    texts = "\n".join(map(guide_text, GUIDES))
    results = (ROOT / "bench" / "results").iterdir()
    assert [path.name for path in results if f"results/{path.name}" not in texts] == []


# Tools


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("arag_search/tools/descriptions/*.md")), ids=lambda path: path.stem
)
def test_a_description_is_plain_text_of_whole_lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert "  \n" not in text
