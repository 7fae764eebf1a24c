"""Write a suite for a corpus and questions of one's own.

    python -m bench suite init corpus.jsonl questions.jsonl --to mine
    python -m bench ablate mine/suite.yaml --data mine --model offline

The folder has the suite and links to both files. The suite says what to change in it.
"""

from __future__ import annotations

import argparse
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
    if missing or folder.exists():
        raise BenchError(
            "There is no such file." if missing else "The folder is there already.",
            where=", ".join(missing) or str(folder),
            allowed="a file of a corpus, one of questions, and a new folder",
            do="Name another.",
        )
    folder.mkdir(parents=True)
    for name, file in files.items():
        (folder / name).symlink_to(file.resolve())
    suite = TEMPLATE.read_text("utf-8").replace("SET", folder.resolve().name)
    (folder / "suite.yaml").write_text(suite, "utf-8")
    print(f"Next: python -m bench ablate {folder}/suite.yaml --data {folder} --model offline")
    return 0
