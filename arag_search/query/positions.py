"""Words and the places they may take."""

from __future__ import annotations

from collections.abc import Sequence


def have_distinct(choices: Sequence[Sequence[int]]) -> bool:
    """Whether one can take a number from each list so that no two are equal.

    Bipartite matching by augmenting paths: O(lists x all their numbers).
    """
    taken: dict[int, int] = {}

    def place(word: int, tried: set[int]) -> bool:
        for position in choices[word]:
            if position not in tried:
                tried.add(position)
                if position not in taken or place(taken[position], tried):
                    taken[position] = word
                    return True
        return False

    return all(place(word, set()) for word in range(len(choices)))
