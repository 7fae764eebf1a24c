"""The policy: the next call, given all replies so far.

A searcher follows the hops in order. For each hop it searches up to four times and reads results
from top to bottom, until the evidence of the hop has been shown or its budget is spent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Literal, get_args

from bench.gold_chain.chain import Chain, Link
from bench.gold_chain.queries import Interface, Search, wordings

POLICY_VERSION = "1"
"""Increase it with every change of what is asked or of what counts as found, and measure all
interfaces again."""
PASSAGES_A_SEARCH = 5
HOP_TOKENS = 4_000
"""The budget of a hop, after which no call is made; a hop that is not found is charged this."""

ReplyLevel = Literal["full", "full at once", "snippets"]
"""Passages in full, one a reply, or all of a search in one reply; or snippets, and chunk_read."""
REPLIES: tuple[ReplyLevel, ...] = get_args(ReplyLevel)

Order = tuple[int, int, int]
ORDERS: Mapping[str, Order] = {
    " ".join(f"Q{at + 1}" for at in order): order for order in permutations((0, 1, 2))
}


@dataclass(frozen=True, slots=True)
class Setting:
    """The levels of the factors, but for names, which the chain holds."""

    interface: Interface
    order: Order
    in_title: bool = False
    reply: ReplyLevel = "full"


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A call of a search tool for some passages of a search."""

    search: Search
    offset: int
    top_k: int

    @property
    def tool(self) -> str:
        """The tool."""
        return self.search.tool

    @property
    def arguments(self) -> dict[str, Any]:
        """Its arguments."""
        return self.search.arguments(self.offset, self.top_k)


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call of chunk_read for one passage."""

    chunk_id: str
    tool: str = "chunk_read"

    @property
    def arguments(self) -> dict[str, Any]:
        """Its arguments."""
        return {"chunk_ids": [self.chunk_id]}


Call = SearchCall | ReadCall


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

    ``tokens`` are retrieved, ``gold_tokens`` are the least that a searcher with these queries
    could have used, if it knew which passage to read. ``zero_hits`` and ``refused`` count
    searches, ``repeated_tokens`` what had been shown before, ``failed_tokens`` the tokens of
    replies that show no passage, which are not retrieved.
    """

    resolved: bool
    shown: bool = False
    tokens: int = 0
    gold_tokens: int = 0
    searches: int = 0
    zero_hits: int = 0
    refused: int = 0
    repeated_tokens: int = 0
    failed_tokens: int = 0


Walk = Generator[Call, Reply, tuple[HopOutcome, ...]]
Steps = Generator[Call, Reply, None]


def walk(chain: Chain, setting: Setting) -> Walk:
    """Yield the calls for a question, each of which is answered with its reply, and return the
    outcomes of the hops."""
    walker = _Walker(chain, setting)
    for number, link in enumerate(chain.links):
        walker.outcomes.append(HopOutcome(resolved=bool(link.evidence)))
        if link.evidence:
            yield from walker.follow(link)
        walker.outcomes[-1].shown = number in walker.shown_hops
    return tuple(walker.outcomes)


@dataclass(slots=True)
class _Walker:
    """The state of a walk. ``wanted`` maps a passage to the hops that it is evidence of,
    ``seen`` to the most tokens that were shown of it at once."""

    chain: Chain
    setting: Setting
    outcomes: list[HopOutcome] = field(default_factory=list[HopOutcome])
    shown_hops: set[int] = field(default_factory=set[int])
    seen: dict[str, int] = field(default_factory=dict[str, int])
    read: set[str] = field(default_factory=set[str])
    wanted: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list[int]))

    def __post_init__(self) -> None:
        for number, link in enumerate(self.chain.links):
            for chunk_id in link.evidence:
                self.wanted[chunk_id].append(number)

    @property
    def hop(self) -> HopOutcome:
        """The hop that is followed."""
        return self.outcomes[-1]

    @property
    def done(self) -> bool:
        """Whether nothing more is asked for this hop."""
        return len(self.outcomes) - 1 in self.shown_hops or self.hop.tokens >= HOP_TOKENS

    def follow(self, link: Link) -> Steps:
        """Search for a hop: the three queries in their order, then the first one again, from where
        it was left. Queries that are written alike are asked once."""
        setting = self.setting
        written = wordings(setting.interface, link.name, link.relation, in_title=setting.in_title)
        searches = [
            Search(setting.interface, wording)
            for wording in dict.fromkeys(written[at] for at in setting.order)
        ]
        has_more: list[bool] = []
        for search in searches:
            if self.done:
                return
            has_more.append((yield from self.look(search)))
        if has_more[0] and not self.done:
            again = searches[0]
            yield from self.look(Search(again.interface, again.wording, PASSAGES_A_SEARCH))

    def look(self, search: Search) -> Generator[Call, Reply, bool]:
        """Read the passages of a search; whether it has more of them."""
        self.hop.searches += 1
        step = 1 if self.setting.reply == "full" else PASSAGES_A_SEARCH
        more = True
        for offset in range(search.first, search.first + PASSAGES_A_SEARCH, step):
            reply = yield SearchCall(search, offset, step)
            self.note(reply)
            if not reply.shown:
                self.hop.refused += reply.refused
                self.hop.zero_hits += offset == 0 and not reply.refused
                return False
            more = reply.more
            if self.setting.reply == "snippets":
                yield from self.read_all(reply.shown)
            if self.done or not more:
                break
        return more

    def read_all(self, shown: Sequence[Shown]) -> Steps:
        """Read in full what was not read before, from top to bottom."""
        for passage in shown:
            if self.done:
                return
            if passage.id not in self.read:
                self.read.add(passage.id)
                self.note((yield ReadCall(passage.id)), of_read=True)

    def note(self, reply: Reply, *, of_read: bool = False) -> None:
        """Record what a reply shows and what it costs."""
        hop = self.hop
        if not reply.shown:
            hop.failed_tokens += reply.result_tokens
        is_snippet = self.setting.reply == "snippets" and not of_read
        for passage in reply.shown:
            hop.tokens += passage.tokens
            hop.repeated_tokens += min(self.seen.get(passage.id, 0), passage.tokens)
            self.seen[passage.id] = max(self.seen.get(passage.id, 0), passage.tokens)
            is_gold = self._shows_evidence(passage)
            if is_snippet or is_gold:
                hop.gold_tokens += passage.tokens

    def _shows_evidence(self, passage: Shown) -> bool:
        """Return whether the passage shows evidence of any hop for the first time."""
        new = [
            number
            for number in self.wanted.get(passage.id, ())
            if number not in self.shown_hops
            and any(text in passage.text for text in self.chain.links[number].evidence[passage.id])
        ]
        self.shown_hops.update(new)
        return bool(new)
