"""What folders leave out: .gitignore files, hidden entries, and their counts."""

from pathlib import Path

from index_jobs.sources.folders.listing import FolderListing, LeftOut
from index_jobs.sources.folders.selection import HIDDEN, IGNORED, FileSelection
from tests.support.corpus_files import in_own_folder  # noqa: F401


def write(**files: str) -> None:
    for name, content in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def listed(folder: str, left_out: LeftOut | None = None, *, no_ignore: bool = False) -> list[str]:
    files = FileSelection(include=("*",), no_ignore=no_ignore).rooted([folder])
    listing = FolderListing(folder, files)
    return [file.relative for file in listing(left_out or LeftOut())]


def test_ignored_and_hidden_entries_are_left_out_and_named() -> None:
    write(
        **{
            "r/.gitignore": "*.log\n/build/\n",
            "r/.env": "secret",
            "r/a.log": "",
            "r/build/x.md": "",
            "r/src/build/y.md": "",
            "r/src/.gitignore": "!keep.log\n",
            "r/src/keep.log": "",
            "r/src/node_modules/z.md": "",
            "r/__pycache__/b.txt": "",
            "r/node_modules": "a file of this name is read",
        }
    )
    left_out = LeftOut()
    assert listed("r", left_out) == ["node_modules", "src/build/y.md", "src/keep.log"]
    assert left_out.counts == {HIDDEN: 3, "__pycache__": 1, IGNORED: 2, "node_modules": 1}
    assert len(listed("r", no_ignore=True)) == 10


def test_a_folder_of_a_repository_inherits_its_rules_unless_it_is_ignored_itself() -> None:
    write(
        **{
            "r/.git/info/exclude": "*.secret\n",
            "r/.gitignore": "*.tmp\nout/\ndocs/old/\n",
            "r/docs/a.tmp": "",
            "r/docs/a.secret": "",
            "r/docs/old/b.md": "",
            "r/docs/c.md": "",
            "r/out/d.tmp": "",
            "r/docs/other/.git/HEAD": "",
            "r/docs/other/e.tmp": "",
            "outside/.gitignore": "*\n",
            "outside/f/g.md": "",
        }
    )
    assert listed("r/docs") == ["c.md", "other/e.tmp"]
    assert listed("r/out") == ["d.tmp"]
    assert listed("outside/f") == ["g.md"], "without a repository, only rules inside count"
    assert listed("outside") == []


def test_a_rules_file_with_faults_is_read_as_far_as_it_goes() -> None:
    Path("r").mkdir()
    write(**{"r/a.txt": "", "r/b.txt": "", "r/c.txt": ""})
    Path("r/.gitignore").write_bytes(b"\xef\xbb\xbfa.txt\r\n!\n[z-a]\n\\\n\xff\xfe\nb.txt")
    assert listed("r") == ["c.txt"]
    Path("r/.gitignore").unlink()
    Path("rules").write_text("*")
    Path("r/.gitignore").symlink_to("../rules")
    assert listed("r") == ["a.txt", "b.txt", "c.txt"], "git follows no link either"
