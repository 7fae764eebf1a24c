"""Opening an index, once or to follow builds and updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal, TypeVar

from arag_search.engines.base import DEFAULT_SEARCH_TIMEOUT_S, check_search_timeout
from arag_search.engines.open import open_engine
from arag_search.engines.opensearch.address import is_address
from arag_search.plan.lower import lower_scope
from arag_search.query.filters import Data, filter_text, parse_filter
from arag_search.search.following import FollowedState, Follower
from arag_search.search.index import Index
from arag_search.system.arguments import made_of
from arag_search.system.progress import Progress
from arag_search.vectors.base import Encoder, EncoderIdentity
from arag_search.vectors.opening import vector_source

SERVER_LOOKS_S = 1.0
"""The shortest time between two requests that ask a server whether an index has changed."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class IndexOpening:
    """Where an index is, and how it is opened; see ``arag_search.open_index``."""

    location: str | Path
    _: KW_ONLY
    filter: str | Data | None = None
    ca_certs: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    vectors: str | Path | None = None
    encoder: Encoder | str | None = None
    nprobe: int | None = None
    search_timeout_s: float | None = DEFAULT_SEARCH_TIMEOUT_S
    refresh: Literal["auto"] | None = None

    def __post_init__(self) -> None:
        if self.filter is not None:
            object.__setattr__(self, "filter", filter_text(self.filter))

    def open(
        self, shared: dict[EncoderIdentity, Encoder] | None = None, *, is_first: bool = True
    ) -> Index:
        """Open the index as it is now. Unless this ``is_first``, vectors that do not fit it are an
        error only when they are searched. ``shared`` is as in ``vector_source``."""
        check_search_timeout(self.search_timeout_s)
        name, engine, release, is_outdated = open_engine(
            str(self.location), self.ca_certs, self.client_cert, self.client_key
        )
        try:
            manifest = engine.manifest
            scope = None
            if self.filter is not None:
                scope = lower_scope(parse_filter(self.filter, manifest.query_schema))
            source = vector_source(name, manifest, self.vectors, self.encoder, self.nprobe, shared)
            if self.vectors is not None and is_first:
                source.open_vectors()
                if self.encoder is not None and not isinstance(self.encoder, str):
                    source.open()
        except BaseException:
            engine.close()
            release()
            raise
        return Index(engine, name, scope, release, source, self.search_timeout_s, is_outdated)

    def opened(self) -> Index:
        """Open the index, which follows builds and updates if ``refresh`` says so."""
        if self.refresh == "auto":
            follower = self.follow(lambda index: index.state)
            return Index.over(follower, follower.close)
        return self.open()

    def follow(self, prepared: Callable[[Index], _T]) -> Follower[_T]:
        """Open the index, and again whenever another state of it is published. ``prepared`` makes
        of each state the value that is used. All states share the models. Raises what it and
        ``open`` raise.
        """
        shared: dict[EncoderIdentity, Encoder] = {}
        is_first = True

        def open_newest() -> FollowedState[_T]:
            nonlocal is_first
            index = self.open(shared, is_first=is_first)
            try:
                value = prepared(index)
            except BaseException:
                index.close()
                raise
            is_first = False
            return FollowedState(value, index.is_outdated, index.close)

        def close_models() -> None:
            for encoder in shared.values():
                encoder.close()

        every_s = SERVER_LOOKS_S if is_address(str(self.location)) else 0.0
        return Follower(open_newest, every_s, close_models)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOpening(IndexOpening):
    """The same, where a location may be a folder of files; see ``arag_search.open_index``."""

    fresh: bool = False
    yes: bool = False
    progress: Progress | None = None


@made_of(IndexOpening)
def open_index(opening: IndexOpening) -> Index:
    """Open an index, as ``arag_search.open_index`` does, which takes folders of files, too."""
    return opening.opened()
