"""Detecting ids that were seen before, in little memory."""

from __future__ import annotations

import hashlib
from array import array


class SeenIds:
    """A set of 64-bit hashes of ids: at most 22 bytes an id, 33 while it grows.

    An equal hash is a suspicion, not a proof: among 20 million different ids, the chance of any
    collision is 1 in 90,000. The caller must confirm a suspicion.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 << 10))
        self._mask = len(self._slots) - 1
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def add(self, identifier: str) -> bool:
        """Add an id; return whether it may have been added before."""
        digest = hashlib.blake2b(identifier.encode(), digest_size=8).digest()
        if not self._put(int.from_bytes(digest, "little") or 1):
            return True
        self._used += 1
        if self._used * 4 > len(self._slots) * 3:
            self._grow()
        return False

    def _put(self, value: int) -> bool:
        """Store a hash, by open addressing with linear probing; 0 marks a free slot. Return False
        if it was already stored."""
        slots, mask = self._slots, self._mask
        place = value & mask
        while stored := slots[place]:
            if stored == value:
                return False
            place = (place + 1) & mask
        slots[place] = value
        return True

    def _grow(self) -> None:
        before = self._slots
        self._slots = array("Q", bytes(len(before) * 16))
        self._mask = len(self._slots) - 1
        for value in before:
            if value:
                self._put(value)
