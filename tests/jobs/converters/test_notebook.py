"""Notebooks: their cells, in every version of the format, and damaged ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.converted import document_of, refusal_of, written


def notebook(cells: list[dict[str, Any]], **more: Any) -> str:
    return json.dumps({"cells": cells, "metadata": {"title": "HIDDEN"}, "nbformat": 4, **more})


def test_cells_are_markdown_with_code_between_fences_and_outputs_are_not_read(
    tmp_path: Path,
) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# The Sea\n", "It is *wide*."]},
        {
            "cell_type": "code",
            "source": "\x1b[1mwave\x1b[0m = 1\n",
            "outputs": [{"text": "HIDDEN \ud800"}],
        },
        {"cell_type": "markdown", "source": "## Wind\r\rIt is fair."},
        {"cell_type": "code", "source": ['text = """\n', "```\n", '"""'], "outputs": []},
        {"cell_type": "code", "source": []},
        {"cell_type": "raw", "source": "\\begin{sea}", "attachments": {"a.png": "HIDDEN"}},
    ]
    document = document_of(written(tmp_path / "a.ipynb", notebook(cells, x=float("nan"))))
    assert document.title == "The Sea"
    assert document.text == (
        "# The Sea\nIt is *wide*.\n\n```\nwave = 1\n```\n\n## Wind\n\nIt is fair.\n\n"
        '````\ntext = """\n```\n"""\n````\n\n\\begin{sea}'
    )
    assert [(unit.kind, unit.name) for unit in document.outline] == [
        ("section", "The Sea"), ("block", ""), ("section", "Wind"), ("block", ""),
    ]  # fmt: skip


def test_notebooks_of_version_3_have_worksheets_and_headings(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Waves"]},
        {"cell_type": "code", "input": ["wave = 1"], "language": "python"},
    ]
    written(tmp_path / "a.ipynb", json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}))
    document = document_of(tmp_path / "a.ipynb")
    assert (document.title, document.text) == ("Waves", "## Waves\n\n```\nwave = 1\n```")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "Expecting value"),
        ('{"cells": [', "Expecting value"),
        ("[]", "it has no cells"),
        ('{"cells": {}}', "it has no cells"),
        ('{"cells": [1]}', "no attribute"),
        ("[" * 200_000, "recursion"),
    ],
)
def test_a_damaged_notebook_is_a_bad_file(tmp_path: Path, content: str, reason: str) -> None:
    error = refusal_of(written(tmp_path / "a.ipynb", content))
    assert error.what.startswith("The file cannot be read as a notebook (")
    assert reason in error.what
