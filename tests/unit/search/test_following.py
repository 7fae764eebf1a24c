"""A follower of an index: which state a use gets, and when states are closed."""

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from arag_search.errors import IndexClosedError, IndexDamagedError, IndexNotFoundError
from arag_search.search import following
from arag_search.search.following import FollowedState, Follower
from tests.support.patience import PATIENCE_S


class Published:
    """An index whose published state is a number."""

    def __init__(self) -> None:
        self.number = 0
        self.closed: list[int] = []
        self.looks = 0
        self.failure: Exception | None = None
        self.may_answer: Callable[[float], object] = lambda _: None

    def open(self) -> FollowedState[int]:
        if self.failure is not None:
            raise self.failure
        number = self.number
        return FollowedState(
            number, lambda: self.is_outdated(number), lambda: self.closed.append(number)
        )

    def is_outdated(self, number: int) -> bool:
        self.looks += 1
        self.may_answer(PATIENCE_S)
        return number != self.number


@pytest.fixture(name="index")
def a_published_index() -> Published:
    return Published()


def state(follower: Follower[int], result: str | None = None, *, continues: bool = False) -> int:
    with follower.use(result, continues=continues) as number:
        return number


def test_a_use_has_the_newest_state_and_the_one_before_is_closed(index: Published) -> None:
    follower = Follower(index.open)
    index.number = 1
    assert state(follower) == 1
    assert index.closed == [0]


def test_a_use_goes_on_with_its_state_which_is_closed_when_it_ends(index: Published) -> None:
    follower = Follower(index.open)
    with follower.use() as busy:
        index.number = 1
        assert (busy, state(follower)) == (0, 1)
        assert index.closed == []
    assert index.closed == [0]


def test_further_pages_come_from_the_state_of_the_first_one(index: Published) -> None:
    follower = Follower(index.open)
    assert state(follower, "sea") == 0
    index.number = 1
    assert state(follower, "sea", continues=True) == 0
    assert state(follower, "ship", continues=True) == 1
    assert state(follower, "sea") == 1
    assert state(follower, "sea", continues=True) == 1
    assert index.closed == [0]


def test_states_for_further_pages_are_bounded_in_number_and_time(
    index: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = Follower(index.open)
    for number in range(following.KEPT_STATES + 3):
        index.number = number
        assert state(follower, f"result {number}") == number
    assert index.closed == [0, 1]
    monkeypatch.setattr(following, "KEPT_S", -1.0)
    assert state(follower) == following.KEPT_STATES + 2
    assert len(index.closed) == following.KEPT_STATES + 2


def test_a_state_that_cannot_be_opened_leaves_the_one_before_in_use(
    index: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_RETRY_S", 0.0)
    follower = Follower(index.open)
    index.number, index.failure = 1, IndexDamagedError("It is damaged.")
    assert state(follower) == 0
    index.failure = None
    assert state(follower) == 1


def test_a_server_is_asked_at_most_once_in_the_given_time(index: Published) -> None:
    follower = Follower(index.open, every_s=60.0)
    index.number = 1
    assert [state(follower) for _ in range(5)] == [0] * 5
    assert index.looks == 0


def test_a_server_is_asked_beside_a_call_which_is_repeated_if_there_is_another_state(
    index: Published,
) -> None:
    published, asked = threading.Event(), list[int]()
    index.may_answer = published.wait
    follower = Follower(index.open, every_s=1e-9)

    def ask(number: int) -> str:
        asked.append(number)
        index.number = max(index.number, 1)  # it is published while the first call runs
        published.set()
        return f"of {number}"

    assert follower.answer(ask, "sea") == "of 1"
    assert asked == [0, 1]
    index.number = 2
    assert follower.answer(ask, "sea", continues=True) == "of 1"
    assert asked == [0, 1, 1]


def test_an_index_that_is_gone_is_looked_up_before_that_is_an_error(index: Published) -> None:
    follower = Follower(index.open, every_s=60.0)

    def ask(number: int) -> int:
        if not number:
            raise IndexNotFoundError("It is gone.")
        return number

    with pytest.raises(IndexNotFoundError):
        follower.answer(ask)
    index.number = 1
    assert follower.answer(ask) == 1
    assert index.looks == 2


def test_a_closed_follower_closes_its_states_and_then_ends(index: Published) -> None:
    ended: list[bool] = []
    follower = Follower(index.open, on_end=lambda: ended.append(True))
    with follower.use():
        follower.close()
        assert (index.closed, ended) == ([], [])
    assert (index.closed, ended) == ([0], [True])
    with pytest.raises(IndexClosedError), follower.use():
        pass


def test_a_follower_that_is_closed_while_it_opens_a_state_ends_once_and_last(
    index: Published,
) -> None:
    opens, may_open = threading.Event(), threading.Event()

    def slowly() -> FollowedState[int]:
        if index.number:
            opens.set()
            assert may_open.wait(PATIENCE_S)
        return index.open()

    follower = Follower(slowly, on_end=lambda: index.closed.append(-1))
    index.number = 1

    def look() -> None:
        with suppress(IndexClosedError):
            state(follower)

    looking = threading.Thread(target=look)
    looking.start()
    assert opens.wait(PATIENCE_S)
    closing = threading.Thread(target=follower.close)
    closing.start()
    closing.join(0.05)
    may_open.set()
    looking.join()
    closing.join()
    assert index.closed == [0, 1, -1]


def test_threads_never_use_a_closed_state(index: Published) -> None:
    follower = Follower(index.open)
    wrong: list[int] = []

    def work() -> None:
        for _ in range(300):
            with follower.use() as number:
                if number in index.closed:
                    wrong.append(number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, 100):
        index.number = number
        state(follower)
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(set(index.closed)) == len(index.closed)
