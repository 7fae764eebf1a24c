"""A searcher at one interface: the policy calls the tools that a model would call."""

from __future__ import annotations

from arag_search.search.asked import Keywords, Meaning, Search
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tools.preset import FULL_TEXT_RESULT_TOKENS, Preset
from arag_search.tools.replies.parts import offers_more, shown_tokens
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import tools_of
from arag_search.vectors.opening import OpenVectors
from bench import BenchError
from bench.ablation.suite import Interface
from bench.gold_chain.chain import Chain
from bench.gold_chain.policy import Call, HopOutcome, Order, Reply, Shown, walk
from bench.gold_chain.queries import arguments_of, tool_of


class RememberedIndex(Index):
    """Another index, which stays open, with what its searches have found: a page is a slice of a
    result, so every search is run once."""

    def __init__(self, index: Index) -> None:
        super().__init__(index.engine, index.location, index.scope)
        self._found: dict[object, SearchResult] = {}
        self._index = index

    def open_vectors(self) -> OpenVectors:
        """See Index."""
        return self._index.open_vectors()

    def search(self, asked: Search | Keywords | Meaning) -> SearchResult:
        """Search, or return what the same search has found."""
        if asked not in self._found:
            self._found[asked] = self._index.search(asked)
        return self._found[asked]


class Searcher:
    """Walks chains at one interface. The replies come from the tools themselves, with full
    passages. Not safe for several threads."""

    def __init__(self, index: Index, interface: Interface) -> None:
        self.interface: Interface = interface
        self._tool = tools_of(preset_of(interface), RememberedIndex(index))[tool_of(interface)]

    def walk(self, chain: Chain, order: Order) -> tuple[HopOutcome, ...]:
        """Walk a chain and return the outcomes of its hops."""
        read_set = ReadSet()
        steps = walk(chain, self.interface, order)
        try:
            call = next(steps)
            while True:
                call = steps.send(self._answer(call, read_set))
        except StopIteration as end:
            return end.value

    def _answer(self, call: Call, read_set: ReadSet) -> Reply:
        """Answer a call, given what was shown before, and add what the answer shows to that."""
        arguments = arguments_of(self.interface, call.wording, call.offset)
        result = self._tool.run(arguments, read_set)
        spans = [span for span in result.passages if span.left_out != "same"]
        shown = tuple(
            Shown(span.id, shown_tokens(result.text, [span]), span.text_in(result.text))
            for span in spans
        )
        counted = sum(passage.tokens for passage in shown)
        if counted != result.retrieved_tokens:
            raise BenchError(
                f"A reply cannot be read: {counted}, and the tool says {result.retrieved_tokens}.",
                where=f"{tool_of(self.interface)} {arguments}",
            )
        return Reply(shown, offers_more(result.text), result.status == "error", result.tokens)


def preset_of(interface: Interface) -> Preset:
    """Return the preset of the tools: the same replies for all interfaces."""
    return Preset.model_validate(
        {
            "name": f"gold chain, {interface}",
            "description": "",
            "tools": (tool_of(interface),),
            "prompt": "arag",
            "plan_first": False,
            "max_loops": 1_000,
            "token_budget": 1_000_000_000,
            "loop_guards": False,
            "max_result_tokens": FULL_TEXT_RESULT_TOKENS,
            "full_text": True,
            "operators": interface != "no operators",
            "tool_description": "full",
            "matching": "token",
            "given": "none",
        }
    )
