"""A real model in worker processes: it gives the same vectors."""

import dataclasses

import numpy as np
import pytest

from arag_search.vectors.base import VECTOR_UNITS
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.embeddings import (
    build_small_index,
    fitting,
    rows_in,
)


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
