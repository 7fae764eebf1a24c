"""A folder of notes with front matter that changes, and an index that follows it."""

from __future__ import annotations

from pathlib import Path

from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import AddReport
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.synchronisation import sync_documents
from tests.support.updated_corpora import assert_equal

OPTIONS = BuildOptions(language="en")
NOTES = {
    "a": "---\ntags: [water, opera]\nzip: 01234\nyear: 1735\nwritten: 2024-01-05\n---\nThe sea.",
    "b": "---\nyear: 1701\n---\nOperetta w2. M&uuml;ller's **sea**side w2.",
    "c": "No front matter, w1 w0.",
    "d": "+++\nyear=1710\nwritten = 2024-02-01T00:30:00+02:00\n[params]\nlang='it'\n+++\nSea w3.",
    "e": "---\ntags: '#water #stone'\nyear: 1650\n---\n\nAn opera by the sea. W1 w2.",
}
CHANGED = {
    "e": "---\ntags: stone\nyear: 1651\nmood: calm\n---\n\nAn opera by the sea. W1 w2.",
    "f": "---\nyear: the year of the flood\nmood: [calm, glad]\n---\nThe sea w1.",
}


def write_notes(notes: dict[str, str]) -> None:
    """Write notes into the folder ``notes``."""
    Path("notes").mkdir(exist_ok=True)
    for name, text in notes.items():
        Path("notes", f"{name}.md").write_text(text, encoding="utf-8")


def found(location: str, query: str) -> list[str]:
    """Return the notes that a query finds."""
    with open_index(location) as index:
        return sorted(hit.doc_id for hit in index.logical_search(query).hits)


def follow_changes(location: str, options: BuildOptions = OPTIONS) -> AddReport:
    """Build an index of notes, change the notes, synchronise it, and compare it with a new build.
    Return the report of the synchronisation."""
    write_notes(NOTES)
    built = build_index(["notes"], location, options)
    assert built.front_fields == {
        "year": "number",
        "tags": "keyword",
        "written": "date",
        "zip": "keyword",
        "params_lang": "keyword",
    }
    assert found(location, "tags:water AND year:<1700") == ["e.md"]
    assert found(location, "written:2024-02-01") == ["d.md"]
    assert found(location, "written:2024-01-31") == []
    assert found(location, "written:[2024-01-31T22:30Z TO 2024-01-31T23:30+01:00]") == ["d.md"]
    assert found(location, "written:>2024-01-31T22:30Z") == []
    assert found(location, "zip:01234") == ["a.md"]
    assert found(location, "stone OR water") == ["a.md", "e.md"]
    assert found(location, "1735 OR tags") == []
    assert found(location, '"müllers seaside w2"') == ["b.md"]
    assert found(location, '"=uuml" AND "=sea"') == ["b.md"]
    write_notes(CHANGED)
    report = sync_documents(["notes"], location)
    assert (report.added, report.replaced, report.unchanged) == (1, 1, 4)
    assert found(location, "mood:calm") == ["e.md", "f.md"]
    assert found(location, "mood:glad AND sea") == ["f.md"]
    assert found(location, 'extra:"year: the year of the flood"') == ["f.md"]
    assert found(location, "tags:water") == ["a.md"]
    build_index(["notes"], "fresh", OPTIONS)
    with open_index(location) as updated, open_index("fresh") as fresh:
        assert_equal(updated, fresh, compact=False)
    again = sync_documents(["notes"], location)
    assert (again.added, again.replaced, again.unchanged, again.front_fields) == (0, 0, 6, {})
    compact_index(location)
    with open_index(location) as updated, open_index("fresh") as fresh:
        assert_equal(updated, fresh, compact=True)
    return report
