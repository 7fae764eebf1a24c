"""Groups of files that repeat others, and the pattern that leaves them out."""

from __future__ import annotations

from pathlib import Path
from random import Random

from index_jobs import build_index
from index_jobs.sources.folders.repeats import MAX_FILES, Repeats


def page(seed: int, words: int = 600) -> list[str]:
    random = Random(seed)
    return [f"{random.choice('abcdefghst')}{random.randrange(900)}" for _ in range(words)]


def as_source(words: list[str]) -> str:
    """Return a page with markup that its reader does not see."""
    marked = [f"``{word}``" if at % 9 == 0 else word for at, word in enumerate(words)]
    return "Title\n=====\n\n" + " ".join(marked)


def groups(files: dict[str, str]) -> list[tuple[str, int]]:
    repeats = Repeats()
    for id, text in files.items():
        repeats.add(id, text)
    return [(group.pattern, group.files) for group in repeats.groups()]


def test_sources_beside_their_pages_are_a_group_with_the_pattern_that_leaves_them_out() -> None:
    files = {f"_sources/lib/p{n}.rst.txt": as_source(page(n)) for n in range(8)}
    files |= {f"lib/p{n}.html": " ".join(page(n)) for n in range(8)}
    files |= {f"lib/other{n}.html": " ".join(page(100 + n)) for n in range(30)}
    assert groups(files) == [("_sources/", 8)]
    repeats = Repeats()
    for id, text in files.items():
        repeats.add(id, text)
    assert str(repeats.groups()[0]) == (
        "8 files repeat others, such as _sources/lib/p0.rst.txt (lib/p0.html); leave them out with "
        "--exclude '_sources/'"
    )


def test_files_of_one_folder_in_two_formats_are_left_out_by_their_ending() -> None:
    files = {f"p{n}.{ending}": " ".join(page(n)) for n in range(6) for ending in ("html", "txt")}
    files |= {f"more{n}.html": " ".join(page(50 + n)) for n in range(6)}
    assert groups(files) == [("*.txt", 6)]


def test_of_two_patterns_the_one_that_leaves_out_less_else_is_named() -> None:
    files = {f"_sources/p{n}.rst.txt": as_source(page(n)) for n in range(8)}
    files |= {f"p{n}.html": " ".join(page(n)) for n in range(8)}
    files |= {"v3.1.html": " ".join(page(7)), "p8.html": " ".join(page(99))}
    assert groups(files) == [("_sources/", 8)]


def test_what_leaves_out_more_than_repeats_is_not_offered() -> None:
    files = {f"old/p{n}.md": " ".join(page(n)) for n in range(6)}
    files |= {f"new/p{n}.md": " ".join(page(n)) for n in range(6)}
    mixed = {f"{f}/{n}.md": " ".join(page(900 + n + 99 * (f == "new"))) for n in range(9) for f in
             ("old", "new")}  # fmt: skip
    assert groups(files | mixed) == []
    few = {f"{folder}/p{n}.md": " ".join(page(n)) for n in range(4) for folder in "ab"}
    assert groups(few) == []
    short = {f"{folder}/p{n}.md": "The same few words." for n in range(9) for folder in "ab"}
    assert groups(short) == []


def test_memory_is_bounded() -> None:
    repeats = Repeats()
    text = " ".join(page(1))
    for number in range(MAX_FILES + 10):
        repeats.add(str(number), text if number >= MAX_FILES else "short")
    assert len(repeats._sketches) == 10


def test_a_build_names_files_that_repeat_others_and_its_line_leaves_them_out(
    tmp_path: Path,
) -> None:
    for n in range(6):
        for name, text in (("_src", as_source(page(n))), ("doc", " ".join(page(n)))):
            path = tmp_path / "docs" / name / f"p{n}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    report = build_index([str(tmp_path / "docs")], tmp_path / "index")
    (line,) = [note for note in report.warnings() if "repeat others" in note]
    assert line.startswith("6 files repeat others, such as ")
    assert line.endswith(("--exclude '_src/'", "--exclude 'doc/'"))
