"""A volume that is full: searches are answered, and a build names the reason."""

import urllib.request

from arag_search.search.opening import open_index
from tests.support.containers import FOLDER, STAND_IN, Corpus, Stack, running, until
from tests.support.parity import differences
from tests.support.patience import PATIENCE_S

FILES = (FOLDER / "docker-compose.yml", STAND_IN / "single.yml", STAND_IN / "small_volume.yml")


def is_blocked(stack: Stack) -> bool:
    url = f"http://127.0.0.1:{stack.ports['ARAG_PORT']}/_cluster/settings"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
        return b"create_index" in reply.read()


def test_a_full_volume_is_named_and_a_build_succeeds_once_there_is_space(corpus: Corpus) -> None:
    with running(*FILES, variables={"ARAG_CORPUS": str(corpus.file)}) as stack:
        stack.compose("up", "--wait", "opensearch")
        assert "Built" in stack.compose("run", "--rm", "load")
        fill = "head -c 76m /dev/zero > data/ballast || true"
        stack.compose("exec", "-T", "opensearch", "sh", "-c", fill)
        until(lambda: is_blocked(stack), "the node blocks new indexes")
        other = {"ARAG_INDEX": "arag-other"}
        output = stack.compose("run", "--rm", "load", check=False, variables=other)
        assert "The server blocks this (cluster.blocks.create_index): index_create_block" in output
        assert "Free disk space" in output
        with open_index(stack.location("ARAG_PORT")) as index:
            for known in corpus.known:
                assert list(differences(known.answer, known.question.ask(index))) == []
        stack.compose("exec", "-T", "opensearch", "rm", "data/ballast")
        until(lambda: not is_blocked(stack), "the node lifts the block", limit_s=120)
        assert "Built" in stack.compose("run", "--rm", "load", variables=other)
