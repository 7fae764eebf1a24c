"""FinanceBench (Islam et al., 2023, arXiv:2311.11944): 150 questions on reports in PDF files.

The format is as in the repository patronus-ai/financebench at cc39aeb: questions in
``data/financebench_open_source.jsonl``, which are read unchanged, and ``pdfs/NAME.pdf`` for each
``doc_name``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from arag_search.questions.files import load_questions
from bench.published.made import Downloaded, made_set
from index_jobs.build.options import BuildOptions
from index_jobs.sources.folders.selection import FileSelection

GET = "git clone https://github.com/patronus-ai/financebench FOLDER"
SOURCE = "data/financebench_open_source.jsonl"


def make(folder: Path, data: Path) -> Iterator[str]:
    """Make the data set ``financebench``: the questions as published, and the index of the 84
    published reports that they are about. The id of a report is the name of its file, and each of
    its pages begins with a line ``[page N]``, from 1.

    Raises BenchError if files are missing, and what building an index raises.
    """
    downloaded = Downloaded(folder, GET)
    source = downloaded.file(SOURCE)
    pdfs = folder / "pdfs"
    names = {id for question in load_questions(source) for id, _ in question.relevant_documents}
    missing = sorted(name for name in names if not (pdfs / name).is_file())
    if missing:
        raise downloaded.lacking(f"{len(missing):,} of its reports, such as pdfs/{missing[0]}")
    options = BuildOptions(overwrite=True, files=FileSelection(root=str(pdfs), max_file_size=None))
    reports = [pdfs / name for name in sorted(names)]
    yield made_set(data / "financebench", reports, options, source)
