"""Write a suite for a corpus and questions of one's own.

    python -m bench suite init corpus.jsonl questions.jsonl --to mine
    python -m bench ablate mine/suite.yaml --data mine --model offline

The folder has the suite and links to both files. The suite says what to change in it.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from bench import BenchError
from bench.arguments import BenchParser
from bench.data import CORPUS_LINES, QUESTIONS

TEMPLATE = Path(__file__).with_name("own_suite.yaml")


def main(arguments: Sequence[str]) -> int:
    """Write the suite and return the exit code."""
    parser = BenchParser("suite", __doc__)
    parser.add_argument("action", choices=("init",), help="write a new suite")
    parser.add_argument("corpus", type=Path, help="the corpus, JSON lines")
    parser.add_argument("questions", type=Path, help="its questions, as arag-search run takes them")
    parser.add_default("--to", Path, Path("mine"), "the new folder; its name is that of the set")
    return parser.run(arguments, _write)


def _write(options: argparse.Namespace, _: str) -> int:
    folder: Path = options.to
    files = {CORPUS_LINES: options.corpus, QUESTIONS: options.questions}
    missing = [str(file) for file in files.values() if not file.is_file()]
    if missing:
        raise BenchError(
            "There is no such file.",
            where=", ".join(missing),
            allowed="the file of a corpus, then that of its questions",
            do="Correct the path.",
        )
    if folder.exists():
        raise BenchError(
            "The folder is there already.",
            where=str(folder),
            allowed="a folder that does not exist",
            do="Name another with --to, or delete this one.",
        )
    folder.mkdir(parents=True)
    for name, file in files.items():
        (folder / name).symlink_to(file.resolve())
    name = folder.resolve().name
    suite = TEMPLATE.read_text("utf-8").replace("SET", name)
    suite = suite.replace("NAME", re.sub(r"[^a-z0-9]+", "_", name.lower()))
    (folder / "suite.yaml").write_text(suite, "utf-8")
    file, data = shlex.quote(str(folder / "suite.yaml")), shlex.quote(str(folder))
    print(f"Next: python -m bench ablate {file} --data {data} --model offline")
    return 0
