"""WixQA (Cohen et al., 2025, arXiv:2505.08643): articles of a help centre, and long answers.

The format is as in the data set ``Wix/WixQA`` on the Hugging Face hub at d662dc4, as public
programs that read its files check it. ``wix_kb_corpus/wix_kb_corpus.jsonl`` has ``id``, ``url``,
``title``, ``contents``, ``html_content`` and ``article_type`` (article, feature_request,
known_issue). ``wixqa_NAME/test.jsonl`` has ``question``, ``answer`` and ``article_ids``. The files
themselves could not be read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.published.made import Downloaded, made_set
from index_jobs.build.options import BuildOptions
from index_jobs.sources.lines.files import Fields

GET = "hf download Wix/WixQA --repo-type dataset --local-dir FOLDER"
CORPUS = "wix_kb_corpus/wix_kb_corpus.jsonl"
PARTS = ("expertwritten", "simulated", "synthetic")

_OPTIONS = BuildOptions(
    overwrite=True,
    fields=Fields(text_field="contents"),
    metadata={"article_type": "keyword", "url": "keyword"},
)


def make(folder: Path, data: Path) -> Iterator[str]:
    """Make a data set of each part that was downloaded, ``wixqa_expertwritten`` and so on. Each has
    the index of all articles, and the file of questions as published.

    Raises BenchError if files are missing, and what building an index raises.
    """
    downloaded = Downloaded(folder, GET)
    corpus = downloaded.file(CORPUS)
    there = [part for part in PARTS if (folder / f"wixqa_{part}" / "test.jsonl").is_file()]
    if not there:
        names = (f"wixqa_{part}/test.jsonl" for part in PARTS)
        raise downloaded.lacking(f"any of {', '.join(names)}")
    for part in there:
        name = f"wixqa_{part}"
        yield made_set(data / name, [corpus], _OPTIONS, folder / name / "test.jsonl")
