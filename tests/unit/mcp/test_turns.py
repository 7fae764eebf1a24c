"""Whose call starts next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from arag_search.mcp_server.turns import Turns

CLIENTS = "abcd"
STEPS = st.lists(st.tuples(st.sampled_from(["add", "end", "leave"]), st.integers(0, 99)))


def started(turns: Turns[int]) -> list[tuple[str, int]]:
    """Start what can start, and check each start against the rules."""
    starts: list[tuple[str, int]] = []
    while True:
        before = Counter(turns.running)
        waiting = {client: list(calls) for client, calls in turns.waiting.items()}
        free = turns.places - before.total()
        start = turns.start()
        if start is None:
            least = min((before[client] for client in waiting), default=None)
            assert least is None or free == 0 or (least > 0 and free <= turns.kept)
            return starts
        client, call = start
        assert isinstance(client, str)
        assert call == waiting[client][0]
        assert before[client] == min(before[other] for other in waiting)
        assert free > (turns.kept if before[client] else 0)
        starts.append((client, call))


@given(STEPS, st.integers(1, 9), st.integers(0, 2))
def test_calls_start_by_the_rules_once_each_and_all_in_the_end(
    steps: Sequence[tuple[str, int]], places: int, kept: int
) -> None:
    kept = min(kept, places - 1)
    turns = Turns[int](places, kept=kept)
    running: list[tuple[str, int]] = []
    expected: dict[str, list[int]] = {client: [] for client in CLIENTS}
    seen: dict[str, list[int]] = {client: [] for client in CLIENTS}

    def start() -> None:
        for client, call in started(turns):
            running.append((client, call))
            seen[client].append(call)

    def end(at: int) -> None:
        client, _ = running.pop(at % len(running))
        turns.end(client)
        start()

    for call, (step, number) in enumerate(steps):
        client = CLIENTS[number % len(CLIENTS)]
        waiting = turns.waiting.get(client, ())
        if step == "add":
            turns.add(client, call)
            expected[client].append(call)
            start()
        elif step == "end" and running:
            end(number)
        elif step == "leave" and waiting:
            gone = list(waiting)[number % len(waiting)]
            turns.leave(client, gone)
            expected[client].remove(gone)
            start()
    while running:
        end(0)
    assert seen == expected
    assert not turns.waiting
    assert not turns.running


@given(st.lists(st.integers(0, 99)), st.integers(2, 4), st.integers(4, 12))
def test_clients_that_all_wait_have_equal_shares_in_whatever_order_their_calls_end(
    ends: Sequence[int], count: int, places: int
) -> None:
    turns = Turns[int](places, kept=1)
    clients = CLIENTS[:count]
    for client in clients:
        for call in range(200):
            turns.add(client, call)
    running = started(turns)
    for number in ends:
        turns.end(running.pop(number % len(running))[0])
        running += started(turns)
        shares = [turns.running[client] for client in clients]
        assert max(shares) - min(shares) <= 1


def test_equals_take_turns_and_a_newcomer_has_a_place_at_once() -> None:
    turns = Turns[int](8, kept=1)
    for call in range(10):
        turns.add("many", call)
    assert len(started(turns)) == 7
    turns.add("few", 0)
    turns.add("new", 0)
    assert started(turns) == [("few", 0)]
    turns.end("many")
    assert started(turns) == [("new", 0)]
    for client in ("few", "new"):
        turns.end(client)
    assert started(turns) == [("many", 7)]
