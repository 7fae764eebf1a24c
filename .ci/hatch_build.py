"""Write the commit of a checkout into what is built of it: see arag_search/system/release.py."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WRITTEN = "arag_search/commit.txt"


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """The hook of wheels and source archives; a checkout that is installed for editing asks git."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file with the commit, unless it is there (in a source archive) or unknown."""
        root = Path(self.root)
        if version == "editable" or (root / WRITTEN).exists() or not (root / ".git").exists():
            return
        try:
            done = subprocess.run(
                ("git", "rev-parse", "--verify", "HEAD"),
                cwd=root, capture_output=True, text=True, check=True, timeout=10,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "commit.txt"
        file.write_text(done.stdout, "utf-8")
        build_data["force_include"][str(file)] = WRITTEN

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file that was added."""
        if self._folder is not None:
            self._folder.cleanup()
