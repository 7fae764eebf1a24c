"""FinanceBench (Islam et al., 2023, arXiv:2311.11944): 150 questions on reports in PDF files.

The format is that of the repository patronus-ai/financebench at cc39aeb: questions in
``data/financebench_open_source.jsonl``, which are read unchanged, and ``pdfs/NAME.pdf`` for each
``doc_name``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from arag_search.questions.files import load_questions
from arag_search.system.durable import write_atomically
from bench.data import QUESTIONS
from bench.published.made import MadeSet, made_set, missing_files, published_file
from index_jobs.build.options import BuildOptions
from index_jobs.sources.selection import FileSelection

GET = "git clone https://github.com/patronus-ai/financebench FOLDER"
SOURCE = "data/financebench_open_source.jsonl"
_NAMED = 3


def make(downloaded: Path, data: Path) -> Iterator[MadeSet]:
    """Make the data set ``financebench``: the questions as published, and the index of the 84
    published reports that they are about. The id of a report is the name of its file, and each of
    its pages begins with a line ``[page N]``, from 1.

    Raises BenchError if files are missing, and what building an index raises.
    """
    source = published_file(downloaded, SOURCE, GET)
    pdfs = downloaded / "pdfs"
    names = {id for question in load_questions(source) for id, _ in question.relevant_documents}
    missing = sorted(name for name in names if not (pdfs / name).is_file())
    if missing:
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        raise missing_files(downloaded, f"pdfs/{', pdfs/'.join(missing[:_NAMED])}{more}", GET)
    folder = data / "financebench"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / QUESTIONS, source.read_bytes())
    options = BuildOptions(overwrite=True, files=FileSelection(root=str(pdfs), max_bytes=None))
    yield made_set(folder, [pdfs / name for name in sorted(names)], options)
