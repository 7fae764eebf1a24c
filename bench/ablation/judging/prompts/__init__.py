"""The prompts of the judges of trajectories, one file for each."""

from __future__ import annotations

from importlib.resources import files


def prompt_text(name: str) -> str:
    """Return the text of a prompt."""
    return files(__name__).joinpath(f"{name}.md").read_text("utf-8").strip()
