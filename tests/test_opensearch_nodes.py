"""Local OpenSearch nodes: started, reported, ended."""

from __future__ import annotations

import json
import urllib.request

import pytest


@pytest.mark.opensearch
def test_a_node_answers_and_scripts_run_on_it(opensearch_url: str) -> None:
    with urllib.request.urlopen(opensearch_url) as reply:
        assert json.load(reply)["version"]["number"] == "3.8.0"
