"""The options of a model, shared by all commands that ask one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from arag_search.endpoints.calls import Retry

ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="The name of an endpoint's model, offline, or replay:FILE.  [default: ARAG_MODEL]",
        metavar="MODEL",
        show_default=False,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        help="The address of an OpenAI-compatible endpoint, up to /v1.  [default: ARAG_BASE_URL, "
        "OPENAI_BASE_URL, or OpenAI's]",
        metavar="URL",
        show_default=False,
    ),
]
Temperature = Annotated[
    float | None, typer.Option(help="Sampling temperature.", metavar="X", show_default=False)
]
TopP = Annotated[
    float | None,
    typer.Option(
        help="Nucleus sampling: the probability mass to choose from.",
        metavar="X",
        show_default=False,
    ),
]
ReasoningEffort = Annotated[
    str | None,
    typer.Option(
        help="How much the model reasons, such as low or high.",
        metavar="EFFORT",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Random seed, for endpoints that accept one.", metavar="N", show_default=False
    ),
]
TimeoutSeconds = Annotated[
    float | None,
    typer.Option(
        "--timeout-s",
        help="Seconds to wait for one reply.",
        metavar="SECONDS",
        show_default=False,
    ),
]
MaxRetries = Annotated[
    int | None,
    typer.Option(
        help="Retries after a rate limit, a timeout or a failure of the endpoint.",
        metavar="N",
        show_default=False,
    ),
]


def retry_text(retry: Retry) -> str:
    """Describe a call that will be retried."""
    return (
        f"{retry.reason}; attempt {retry.attempt + 1} of {retry.attempts} in {retry.wait_s:.1f} s"
    )
