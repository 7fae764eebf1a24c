"""The wheel can be installed, and works outside of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def uv() -> str:
    path = shutil.which("uv")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("uv is not on the path")
        pytest.skip("uv is not on the path")
    return path


def test_the_wheel_runs_the_demo_in_a_fresh_environment(uv: str, tmp_path: Path) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT")
    }

    def call(*command: str | Path) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call(uv, "build", "--quiet", "--wheel", "--out-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    call(uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "env")
    call(uv, "pip", "install", "--quiet", "--python", tmp_path / "env", wheel)
    output = call(tmp_path / "env" / "bin" / "arag-search", "demo")
    assert '2 of 8 passages for ("antonio vivaldi" AND librett*)' in output
    module_path = call(
        tmp_path / "env" / "bin" / "python", "-c", "import arag_search as a; print(a.__file__)"
    )
    assert str(tmp_path) in module_path
