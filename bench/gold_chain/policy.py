"""The policy: the next call, given all replies so far.

A searcher follows the hops in order. For each hop it searches up to four times and reads results
from top to bottom. It stops when the evidence of the hop has been shown or its budget is spent.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import get_args

from bench.ablation.suite import Interface, OrderName
from bench.gold_chain.chain import Chain, Link
from bench.gold_chain.queries import Wording, wordings

POLICY_VERSION = "1"
"""Increase it with every change of the calls or of what counts as found, and measure all interfaces
again."""
PASSAGES_A_SEARCH = 5
HOP_TOKENS = 4_000
"""The budget of a hop, after which no call is made."""

Order = tuple[int, int, int]
ORDERS: Mapping[str, Order] = dict(zip(get_args(OrderName), permutations((0, 1, 2)), strict=True))


@dataclass(frozen=True, slots=True)
class Call:
    """A search for the passage at an offset in its results."""

    wording: Wording
    offset: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage in a reply: o200k tokens of its title and text, and the text."""

    id: str
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a call. ``more`` tells whether the search has further passages."""

    shown: tuple[Shown, ...]
    more: bool
    refused: bool
    result_tokens: int


@dataclass(slots=True)
class HopOutcome:
    """The outcome of a hop and its cost. ``shown`` tells whether its evidence was shown.

    ``tokens`` are retrieved. ``zero_hits`` and ``refused`` count searches, ``failed_tokens`` the
    tokens of replies that show no passage, which are not retrieved.
    """

    resolved: bool
    shown: bool = False
    tokens: int = 0
    searches: int = 0
    zero_hits: int = 0
    refused: int = 0
    failed_tokens: int = 0


def walk(
    chain: Chain, interface: Interface, order: Order
) -> Generator[Call, Reply, tuple[HopOutcome, ...]]:
    """Yield the calls for a question, each of which is answered with its reply, and return the
    outcomes of the hops."""
    walker = _Walker(chain, interface, order)
    for number, link in enumerate(chain):
        walker.outcomes.append(HopOutcome(resolved=bool(link.evidence)))
        if link.evidence:
            yield from walker.follow(link)
        walker.outcomes[-1].shown = number in walker.shown_hops
    return tuple(walker.outcomes)


@dataclass(slots=True)
class _Walker:
    """The state of a walk. The last outcome belongs to the hop that is followed."""

    chain: Chain
    interface: Interface
    order: Order
    outcomes: list[HopOutcome] = field(default_factory=list[HopOutcome])
    shown_hops: set[int] = field(default_factory=set[int])

    @property
    def done(self) -> bool:
        """Whether nothing more is asked for this hop."""
        is_shown = len(self.outcomes) - 1 in self.shown_hops
        return is_shown or self.outcomes[-1].tokens >= HOP_TOKENS

    def follow(self, link: Link) -> Generator[Call, Reply, None]:
        """Search for a hop: the three queries in their order, then the first one again, from where
        it was left. Queries that are written alike are asked once."""
        written = wordings(self.interface, link.name, link.relation)
        queries = list(dict.fromkeys(written[at] for at in self.order))
        has_more: list[bool] = []
        for query in queries:
            if self.done:
                return
            has_more.append((yield from self.look(query, 0)))
        if has_more[0] and not self.done:
            yield from self.look(queries[0], PASSAGES_A_SEARCH)

    def look(self, query: Wording, first: int) -> Generator[Call, Reply, bool]:
        """Read passages of a search one by one; whether it has more of them."""
        hop = self.outcomes[-1]
        hop.searches += 1
        more = True
        for offset in range(first, first + PASSAGES_A_SEARCH):
            reply = yield Call(query, offset)
            for passage in reply.shown:
                hop.tokens += passage.tokens
                self.note_evidence(passage)
            if not reply.shown:
                hop.failed_tokens += reply.result_tokens
                hop.refused += reply.refused
                hop.zero_hits += offset == 0 and not reply.refused
                return False
            more = reply.more
            if self.done or not more:
                break
        return more

    def note_evidence(self, passage: Shown) -> None:
        """Record of which hops a passage shows the evidence."""
        for number, link in enumerate(self.chain):
            if any(text in passage.text for text in link.evidence.get(passage.id, ())):
                self.shown_hops.add(number)
