"""Rerankers: a cross-encoder by its ONNX files, and endpoints with /rerank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.cli.app import run
from arag_search.errors import (
    AragError,
    ArgumentError,
    EncoderFilesError,
    EncoderReplyError,
    EncoderUnavailableError,
)
from arag_search.search.index import open_index
from arag_search.vectors.rerankers import (
    EndpointReranker,
    OnnxReranker,
    open_reranker,
    read_scores,
)
from tests.support.commands import SAMPLE
from tests.support.endpoint import Answer, Endpoint, refusal, running_endpoint
from tests.support.onnx_models import write_cross_encoder, write_encoder

COHERE = {
    "id": "1",
    "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0}],
}
TEI = [{"index": 1, "score": 0.9}, {"index": 0, "score": 0}]


def test_the_score_of_a_pair_is_the_logistic_function_of_the_output(tmp_path: Path) -> None:
    reranker = OnnxReranker(str(write_cross_encoder(tmp_path / "model")), threads=1)
    texts = ["rain in rome", "Vivaldi wrote an opera", "opera opera", ""] * 9
    scores = reranker.scores("a Vivaldi opera", texts)
    # the unknown words and the separators are equal to each other as well
    logits = [1 + 1 * 1, 1 + 2 + 1 * 2, 1 + 2, 1] * 9
    assert scores == pytest.approx([1 / (1 + math.exp(-logit)) for logit in logits])
    assert reranker.scores("opera", []) == []
    assert reranker.name.startswith(f"{tmp_path / 'model'}-")
    reranker.close()
    with pytest.raises(EncoderUnavailableError):
        reranker.scores("opera", texts)


def test_a_model_without_one_score_for_a_pair_is_refused(tmp_path: Path) -> None:
    for folder, shape in (
        (write_cross_encoder(tmp_path / "classes", labels=3), "(1, 3)"),
        (write_encoder(tmp_path / "encoder"), "(1, 5, 4)"),
    ):
        with pytest.raises(EncoderFilesError) as raised:
            open_reranker(str(folder))
        assert raised.value.what == (
            "The model has a part that is not known here: "
            f"an output of shape {shape} for a pair of texts."
        )
        assert raised.value.allowed == "a cross-encoder, with one score for a pair"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with running_endpoint() as running:
        yield running


@pytest.mark.parametrize("body", [COHERE, {"data": TEI}, TEI])
def test_scores_of_an_endpoint_are_in_the_order_of_the_texts(
    endpoint: Endpoint, body: object
) -> None:
    endpoint.reply_with(Answer(body=body))
    reranker = open_reranker(f"{endpoint.base_url}#m", {"ARAG_RERANK_API_KEY": "sk-rerank"})
    assert reranker.scores("opera", ["a", "b"]) == [0, 0.9]
    assert endpoint.requests == [{"model": "m", "query": "opera", "documents": ["a", "b"]}]
    assert (endpoint.paths, endpoint.keys) == (["/v1/rerank"], ["Bearer sk-rerank"])
    assert reranker.scores("opera", []) == []
    reranker.close()


def test_an_endpoint_that_asks_for_texts_gets_them_from_then_on(endpoint: Endpoint) -> None:
    endpoint.reply_with(refusal(422, "missing field `texts`"), Answer(body=TEI))
    reranker = open_reranker("endpoint:m", {"ARAG_RERANK_BASE_URL": endpoint.base_url})
    for _ in range(2):
        assert reranker.scores("opera", ["a", "b"]) == [0, 0.9]
    asked = {"query": "opera", "texts": ["a", "b"], "truncate": True}
    assert endpoint.requests[1:] == [asked, asked]
    reranker.close()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("no JSON", "is not JSON"),
        ("{}", "holds no scores"),
        ('{"results": {"0": 1}}', "holds no scores"),
        ("[]", "holds other scores than the 2 asked for"),
        ('[{"index": 0, "score": 1}]', "holds other scores than the 2 asked for"),
        (
            '[{"index": 0, "score": 1}, {"index": 2, "score": 1}]',
            "holds other scores than the 2 asked for",
        ),
        ('[{"index": 0, "score": 1}, {"index": 0, "score": 1}]', "has index 0 where it cannot be"),
        ('[{"score": 1}, {"score": 2}]', "has index None where it cannot be"),
        ('[{"index": true, "score": 1}]', "has index True where it cannot be"),
        ('[{"index": 0, "score": "1"}]', "has score '1' at index 0"),
        ('[{"index": 0}]', "has score None at index 0"),
        ('[{"index": 0, "score": true}]', "has score True at index 0"),
        ("[0.5, 0.4]", "has index None where it cannot be"),
    ],
)
def test_an_odd_reply_is_an_error(endpoint: Endpoint, body: str, problem: str) -> None:
    with pytest.raises(ValueError, match="The endpoint's reply") as raised:
        read_scores(body, 2)
    assert str(raised.value) == f"The endpoint's reply {problem}"
    endpoint.reply_with(Answer(body=body))
    reranker = EndpointReranker("m", base_url=endpoint.base_url)
    with pytest.raises(EncoderReplyError) as refused:
        reranker.scores("opera", ["a", "b"])
    assert problem in refused.value.what
    assert refused.value.where == f"reranker m at {endpoint.base_url}"
    reranker.close()


def test_a_name_that_means_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError) as raised:
        open_reranker(" ")
    assert str(raised.value).startswith("The reranker has no name.\nAllowed: endpoint:MODEL, ")
    with pytest.raises(AragError) as missing:
        open_reranker("endpoint:m", {})
    assert str(missing.value) == (
        "Model 'endpoint:m' needs a key or a base URL, and neither is set.\n"
        "Do: Set ARAG_RERANK_API_KEY or OPENAI_API_KEY, for another endpoint than OpenAI's also "
        "ARAG_RERANK_BASE_URL (a local server needs no key)."
    )


def test_the_command_line_and_python_order_again_by_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, location = str(write_cross_encoder(tmp_path / "model")), str(tmp_path / "index")
    some = tmp_path / "some.jsonl"
    some.write_text("".join(Path(SAMPLE).read_text("utf-8").splitlines(keepends=True)[:12]))
    assert run(["index", str(some), "--to", location]) == 0
    with open_index(location, reranker=model) as index:
        plain = index.logical_search("opera OR vivaldi", top_k=10)
        again = index.logical_search("opera OR vivaldi", top_k=10, rerank=True)
    relevance = [hit.relevance for hit in again.hits]
    assert relevance == sorted(relevance, key=lambda score: -(score or 0))
    assert len(set(relevance)) > 1
    assert again.total == plain.total
    capsys.readouterr()
    assert run(["search", location, "opera OR vivaldi", "--reranker", model]) == 0
    assert f"relevance {relevance[0]:.2f}" in capsys.readouterr().out
    queries = tmp_path / "queries.txt"
    queries.write_text("opera OR vivaldi\n")
    trec = ["--queries", str(queries), "--output-format", "trec", "--reranker", model]
    assert run(["search", location, *trec]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[2] for line in lines] == [hit.id for hit in again.hits[:5]]
    expected = pytest.approx([1 / rank for rank in range(1, 6)], abs=1e-6)
    assert [float(line[4]) for line in lines] == expected
