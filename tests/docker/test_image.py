"""The image: what it needs, who it runs as, and how it stops."""

import subprocess
import time
import uuid
from pathlib import Path

import pytest

from tests.support.containers import IMAGE, ROOT, TOKEN, docker, until

MAX_MEGABYTES = 750
CAREFUL = ("run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp")


def test_the_demo_needs_no_network() -> None:
    output = docker("run", "--rm", "--network", "none", IMAGE, "demo").stdout
    assert "\n2 of 8 passages\n" in output


def test_the_root_file_system_may_be_read_only_and_the_user_any() -> None:
    output = docker(*CAREFUL, "--user", "12345:12345", IMAGE, "demo", "--to", "/tmp/demo").stdout
    assert "\n2 of 8 passages\n" in output


def test_an_index_in_a_mounted_folder_belongs_to_the_user_of_the_container(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    corpus = f"{ROOT}/arag_search/sample:/corpus:ro"
    options = [*CAREFUL, "--user", "4711:4711", "-v", f"{tmp_path}:/indexes", "-v", corpus, IMAGE]
    docker(*options, "index", "/corpus/corpus.jsonl", "--to", "wiki")
    assert "griselda" in docker(*options, "search", "wiki", "griselda AND librett*").stdout.lower()
    assert (tmp_path / "wiki").stat().st_uid == 4711


def test_the_image_is_not_root_and_not_large() -> None:
    user = docker("image", "inspect", "-f", "{{.Config.User}}", IMAGE).stdout.strip()
    assert user == "1000:1000"
    history = docker("history", "--human=false", "--format", "{{.Size}} {{.CreatedBy}}", IMAGE)
    layers = [line.partition(" ") for line in history.stdout.splitlines()]
    ours = [int(size) for size, _, command in layers if "COPY /opt/" in command]
    assert len(ours) == 3
    assert sum(ours) <= MAX_MEGABYTES * 1e6


def test_java_uses_the_cache_of_classes_of_the_image() -> None:
    program = "from arag_search.engines.lucene.jvm import aot_cache, class_path as jars; "
    program += "print(aot_cache(jars()).exists())"
    output = docker(
        "run", "--rm", "--network", "none", "--entrypoint", "python", IMAGE, "-c", program
    )
    assert output.stdout.strip() == "True"


@pytest.mark.parametrize("command", ["mcp", "index"])
def test_a_container_stops_at_once(command: str, tmp_path: Path) -> None:
    name = f"arag-test-{uuid.uuid4().hex[:8]}"
    served = ["sh", "-c", "arag-search index /sample --format documents --to /tmp/i && exec "
              "arag-search mcp /tmp/i --transport http --host 0.0.0.0 --token-env T"]  # fmt: skip
    sample = f"{ROOT}/arag_search/sample/corpus.jsonl:/sample:ro"
    options = ["--name", name, "-i", "-v", sample, "-e", f"T={TOKEN}"]
    if command == "mcp":
        words = [*options, "--entrypoint", served[0], IMAGE, *served[1:]]
    else:
        words = [*options, IMAGE, "index", "-", "--to", "/tmp/i"]
    process = subprocess.Popen(
        ["docker", "run", *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        if command == "mcp":
            health = "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/health')"
            probe = ["exec", name, "python", "-c", health]
            until(lambda: docker(*probe, check=False).returncode == 0, "the health check passes")
        else:
            until(lambda: "arag-search" in docker("top", name, check=False).stdout, "it runs")
            time.sleep(2)
        began = time.monotonic()
        docker("stop", "--time", "30", name)
        assert time.monotonic() - began < 5
        code = docker("inspect", "-f", "{{.State.ExitCode}}", name).stdout.strip()
        assert code == {"mcp": "143", "index": "130"}[command]
    finally:
        docker("rm", "-f", name, check=False)
        process.communicate()
