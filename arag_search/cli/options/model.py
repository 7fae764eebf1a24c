"""The options of a model, shared by all commands that use one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from arag_search.agent.models.base import ChatModel
    from arag_search.endpoints.calls import Retry

BaseUrl = Annotated[
    str | None,
    typer.Option(
        help="The address of an OpenAI-compatible endpoint, up to /v1.  [default: ARAG_BASE_URL, "
        "OPENAI_BASE_URL, or OpenAI's]",
        metavar="URL",
    ),
]
RecordReplies = Annotated[
    Path | None,
    typer.Option(
        help="Write the model's replies to this file, for --model replay:FILE.", metavar="FILE"
    ),
]


class ModelOptions(NamedTuple):
    """The options of a command that asks a model; None means not given."""

    model: Annotated[
        str | None,
        typer.Option(
            help="The name of an endpoint's model, offline, or replay:FILE.  [default: ARAG_MODEL]",
            metavar="MODEL",
        ),
    ] = None
    base_url: BaseUrl = None
    temperature: Annotated[
        float | None, typer.Option(help="Sampling temperature.", metavar="X")
    ] = None
    reasoning_effort: Annotated[
        str | None,
        typer.Option(help="How much the model reasons, such as low or high.", metavar="EFFORT"),
    ] = None
    timeout_s: Annotated[
        float | None,
        typer.Option(
            "--timeout-s",
            help="Seconds to wait for one reply of an endpoint.  [default: 120]",
            metavar="SECONDS",
        ),
    ] = None

    def choose(
        self,
        report: Callable[[str], None],
        *,
        record_replies: Path | None = None,
        allow_offline: bool = True,
    ) -> ChatModel:
        """Choose the model; retries of its calls are reported. Raises as ``choose_model``."""
        from arag_search.agent.models.choose import choose_model

        return choose_model(
            **self._asdict(),
            allow_offline=allow_offline,
            record_replies=record_replies,
            on_retry=lambda retry: report(_retry_text(retry)),
        )


def _retry_text(retry: Retry) -> str:
    return (
        f"{retry.reason}; attempt {retry.attempt + 1} of {retry.attempts} in {retry.wait_s:.1f} s"
    )
