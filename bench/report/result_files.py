"""Files of results for readers: rows by file, figure and name."""

from __future__ import annotations

from pathlib import Path

from bench import BenchError
from bench.report.rows import Figure, Row, read_results


class Kept:
    """The files of results in a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, dict[str, Figure]] = {}

    def has(self, file: str) -> bool:
        """Return whether a result exists: ``file`` is a name without its ending, or
        "file/figure"."""
        name, _, figure = file.partition("/")
        if not (self.folder / f"{name}.json").exists():
            return False
        return not figure or figure in self.file(name)

    def file(self, name: str) -> dict[str, Figure]:
        """Return all figures of a file. Raises BenchError if there is none."""
        if name not in self._files:
            self._files[name] = read_results(self.folder / f"{name}.json")
        return self._files[name]

    def figure(self, name: str) -> Figure:
        """Return the figure called "file/figure". Raises BenchError if there is none."""
        file, _, figure = name.partition("/")
        figures = self.file(file)
        if figure not in figures:
            raise BenchError(
                f'There is no figure "{figure}".',
                where=str(self.folder / f"{file}.json"),
                allowed=", ".join(figures),
            )
        return figures[figure]

    def row(self, name: str) -> Row:
        """Return the row called "file/figure/what", the first of that name. Raises BenchError if
        there is none."""
        file, figure, what = name.split("/", 2)
        rows = self.figure(f"{file}/{figure}").rows
        for row in rows:
            if row.what == what:
                return row
        raise BenchError(
            f'There is no row "{what}".',
            where=f"{self.folder / file}.json, {figure}",
            allowed=", ".join(dict.fromkeys(row.what for row in rows)),
        )
