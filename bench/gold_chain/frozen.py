"""The policy is frozen: its hash is kept in a file, and nothing is measured with another one."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from bench import BenchError

ROOT = Path(__file__).parents[2]
FROZEN = Path(__file__).with_name("policy.sha256")
MADE_OF = (
    "bench/gold_chain/names.py",
    "bench/gold_chain/queries.py",
    "bench/gold_chain/policy.py",
    "bench/gold_chain/evidence.py",
    "bench/quality/question_words.py",
    "arag_search/agent/models/offline/words.py",
)
"""The files that define what is asked and what counts as found; each character is hashed."""


@functools.cache
def policy_hash() -> str:
    """SHA-256 of the policy as it is now."""
    digest = hashlib.sha256()
    for name in MADE_OF:
        digest.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.hexdigest()


def check_frozen() -> str:
    """Return the hash of the policy. Raises BenchError unless it is the one in FROZEN."""
    wanted = FROZEN.read_text("ascii").strip()
    if policy_hash() != wanted:
        raise BenchError(
            f"The policy of the gold-chain agent has changed: it is {policy_hash()[:16]}, and "
            f"{wanted[:16]} is frozen.",
            where=", ".join(MADE_OF),
            allowed=f"the frozen policy, {FROZEN.name}",
            do="Undo the change; or list it in bench/studies/gold_chain.md, write the new hash "
            "with python -m bench gold_chain --freeze, and measure every interface again.",
        )
    return wanted
