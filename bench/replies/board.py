"""Peers of the benches of lookups and of code: other ways to search the same files, and our own
command beside them. Each peer is a script with its own requirements, so that none becomes a
dependency.

A lookup has its ``keywords`` and its ``answers``, or the ``name`` whose definition a reply must
show, and may say what it is ``asked_by``."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.engines.lucene.location import folder_bytes
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from bench import BenchError
from bench.arguments import BenchParser
from bench.processes import run
from bench.report.rows import Figure, Row
from bench.ripgrep.manuals import plain
from bench.workbench import say

_DEFINING = r"\b(?:(?:def|class|function\*?|const)\s+|(?:exports|app|req|res|proto)\.)"
_SCRIPTS = Path(__file__).with_name("peers")


@dataclass(frozen=True, slots=True)
class Peer:
    """A script below ``peers/``, a program that it needs on the PATH, and its variables."""

    script: str
    program: str = ""
    variables: tuple[tuple[str, str], ...] = ()


PEERS: Mapping[str, Peer] = {
    "bm25s": Peer("bm25s_peer.py"),
    "tantivy": Peer("tantivy_peer.py"),
    "fts5": Peer("fts5_peer.py"),
    "ripgrep": Peer("ripgrep_peer.py", "rg"),
    "ripgrep-3": Peer("ripgrep_peer.py", "rg", (("CALLS", "3"),)),
}


def add_peers(parser: BenchParser) -> None:
    """Add the option that names peers; ``check_peers`` checks them."""
    parser.add_default("--peers", _names, (), "peers with commas between them")


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def check_peers(names: Iterable[str]) -> None:
    """Raise BenchError for an unknown peer, and for one whose program is absent."""
    for name in names:
        if name not in PEERS:
            raise BenchError(f'There is no peer "{name}".', allowed=", ".join(PEERS))
        program = PEERS[name].program or "uv"
        if shutil.which(program) is None:
            raise BenchError(
                f"The peer {name} needs {program}, which is not on the PATH.",
                do=f"Install {program}, or leave {name} out of --peers.",
            )


def figure_of(
    name: str, pages: Path, work: Path, lookups: Mapping[str, Mapping[str, object]]
) -> Figure:
    """Return what a peer takes for some files, and which lookups its replies to keywords answer."""
    peer, own = PEERS[name], work / name
    say(f"{name}: installing")
    script = str(_SCRIPTS / peer.script)
    _output(["uv", "sync", "--quiet", "--script", script])
    python = _output(["uv", "python", "find", "--script", script]).strip()
    packages = _output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    environment = {**os.environ, **dict(peer.variables)}
    shutil.rmtree(own, ignore_errors=True)
    say(f"{name}: searching")
    line = [python, script]
    asked = [str(lookup["keywords"]) for lookup in lookups.values()]
    calls = (["first", str(pages), str(own), asked[0]], ["again", str(own), asked[0]])
    first_s, second_s = (run([*line, *call], environment=environment).processor_s for call in calls)
    queries = work / "queries.json"
    queries.write_text(json.dumps(asked))
    replies = json.loads(_output([*line, "all", str(own), str(queries)], environment))
    size = folder_bytes(Path(packages.strip())) / 1e6
    if peer.program:
        size += os.path.getsize(str(shutil.which(peer.program))) / 1e6
    rows = (
        *_rows(name, replies, list(lookups.values())),
        *_costs(name, first_s, second_s, size),
    )
    return Figure(name, rows, {})


def own_replies(index: Index, lookups: Mapping[str, Mapping[str, object]]) -> Iterator[Row]:
    """Return how many lookups our replies to the keywords answer, each in a conversation of its
    own."""
    preset = load_preset(DEFAULT_PRESET)
    replies = [
        LogicalSearch(index, preset).run({"query": lookup["keywords"]}).text
        for lookup in lookups.values()
    ]
    return _rows("ours", replies, list(lookups.values()))


def _rows(
    name: str, replies: Sequence[str], lookups: Sequence[Mapping[str, object]]
) -> Iterator[Row]:
    kinds: dict[object, list[bool]] = {}
    for reply, lookup in zip(replies, lookups, strict=True):
        kinds.setdefault(lookup.get("asked_by"), []).append(_answers(reply, lookup))
    for kind, answers in kinds.items():
        what = f"{name}, {kind}" if kind else name
        yield Row(f"{what}: answer in the reply", sum(answers), f"of {len(answers)}")
    yield Row(f"{name}: tokens of a reply", sum(map(count_tokens, replies)) / len(replies), "")


def own_costs(pages: Path, work: Path, query: str) -> list[Row]:
    """Return what our own command takes over a folder that it has not seen, with an empty cache."""
    cache = work / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = shutil.which("arag-search", path=str(Path(sys.executable).parent)) or "arag-search"
    line = [command, "search", str(pages), query]
    environment = {**os.environ, "ARAG_CACHE_DIR": str(cache)}
    first_s, second_s = (run(line, environment=environment).processor_s for _ in range(2))
    return _costs("ours", first_s, second_s, None)


def _costs(name: str, first_s: float, second_s: float, size: float | None) -> list[Row]:
    rows = [
        Row(f"{name}: first search, from nothing, processor time", first_s, "s"),
        Row(f"{name}: second search, processor time", second_s, "s"),
    ]
    return rows if size is None else [*rows, Row(f"{name}: installed", size, "MB")]


def _answers(reply: str, lookup: Mapping[str, object]) -> bool:
    if "name" in lookup:
        return re.search(rf"{_DEFINING}{re.escape(str(lookup['name']))}\b", reply) is not None
    answers = lookup["answers"]
    assert isinstance(answers, list)
    return any(plain(str(text)) in plain(reply) for text in answers)


def _output(line: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise BenchError(
            f"A command ended with exit code {done.returncode}: {done.stderr.strip()[-500:]}",
            where=" ".join(line),
        )
    return done.stdout
