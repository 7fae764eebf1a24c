"""A real model in processes of its own: it gives the same vectors, and they end without a word."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from arag_search.vectors.base import VECTOR_UNITS
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.embeddings import build_small_index, fitting, rows_in


@pytest.mark.long
def test_the_real_model_gives_the_same_vectors_in_workers_as_in_this_process(minilm: str) -> None:
    build_small_index(20, words=5)
    options = EmbedOptions(batch_size=16, device="cpu")
    for vectors, workers in (("here", 0), ("there", 1)):
        worker_options = dataclasses.replace(options, vectors=vectors, workers=workers)
        report = embed_index("index", minilm, worker_options)
        assert (report.texts, report.encoder.dimension) == ({"sentence": 60, "passage": 20}, 384)
    for unit in VECTOR_UNITS:
        (ordinals, vectors), (ordinals_there, vectors_there) = (
            rows_in(*fitting("index", root), unit) for root in ("here", "there")
        )
        assert ordinals.tolist() == ordinals_there.tolist()
        np.testing.assert_allclose(vectors, vectors_there, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.long
def test_a_search_by_a_real_model_ends_without_a_word_of_the_libraries_under_it(
    minilm: str,
) -> None:
    build_small_index(5, words=5)
    embed_index("index", minilm, EmbedOptions(batch_size=16, device="cpu"))
    script = "from arag_search.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "search", "index", "a word", "--tool", "semantic"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
