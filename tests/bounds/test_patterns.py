"""Any pattern is refused, or compiled and searched with little time and memory: one that is not
would end a server for all of its users, or make them wait."""

import json
import subprocess
import sys
from random import Random

import pytest

from tests.support.examples import examples

PATTERNS = examples(3_000)
IN_A_CHILD = 50
ATOMS = (
    *("a", "bc", ".", r"\d", r"\p{L}", "[a-z]", "[[:alpha:]_]", r"\X", "é", "ß", "(?:a|bc)"),
    *("x{3}", "()", "(?=a)", "(?<!b)", r"\1", "(?1)", "|", "^", "(?#(c)", "[]{9}]", r"\{", "\n"),
)
COUNTS = ("*", "+", "?", "+?", "{2}", "{20}", "{0,300}", "{999}", "{10000}", "{,50}", "{70,}")
GROUPS = ("(", "(?:", "(?>", "(?=", "(?<=", "(?|", "(?P<n>")
CHILD = """
import json, resource, sys, time
from arag_search.query.regexes import SlowPatternError, Stopwatch, check_regex, is_found
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for line in sys.stdin:
    pattern, ignore_case = json.loads(line)
    before, began = peak(), time.process_time()
    try:
        check_regex(pattern, ignore_case)
        said = ""
        is_found(pattern, ignore_case, "a" * 3_000 + "abc " * 500, Stopwatch())
    except SlowPatternError:
        pass
    except ValueError as error:
        said = str(error) or "refused"
    print(json.dumps([said, peak() - before, time.process_time() - began]), flush=True)
"""
REPORTED = (
    "(?:" + "(?:a|bc)" * 20 + "){10000}",
    "(?:" + "|".join(f"{n}a" for n in range(500)) + "){19}",
    "(?:(?:){9999}){9999}",
    "(?:|a){4000}",
    "(" * 2_000 + "a" + ")" * 2_000,
    "(?:" * 30 + "a" + "){2}" * 30,
    "(?:" + "|".join(f"a{n}" for n in range(400)) + "){4}",
    "[" + "".join(map(chr, range(0x4E00, 0x5500))) + "]{9000}",
    "a" * 1_996,
    "ab" * 998,
    "ß" * 1_996,
    "a" * 990 + "(?#b)(?:){3}" + "a" * 990,
    ("a" * 190 + "(?=)*") * 10,
    ("(?:" + "|".join(("a" * 60,) * 2) + "){1}") * 15,
    "(?:" + "a" * 99 + "){1}" + "[a]" * 300 + r"\a" * 400,
)


def drawn(chance: Random, depth: int = 0) -> str:
    """Return a pattern, most often one that can be compiled."""
    pieces: list[str] = []
    for _ in range(chance.randint(1, 5)):
        if depth < 4 and chance.random() < 0.35:
            piece = chance.choice(GROUPS) + drawn(chance, depth + 1) + ")"
        else:
            piece = chance.choice(ATOMS) * chance.choice((1, 1, 2, 20))
        pieces.append(piece + (chance.choice(COUNTS) if chance.random() < 0.4 else ""))
    return "".join(pieces)


@pytest.mark.parametrize("seed", range(max(2, PATTERNS // IN_A_CHILD)))
def test_a_pattern_is_refused_or_searched_within_50_mb_and_a_second(seed: int) -> None:
    chance = Random(seed)
    patterns = [*(REPORTED if seed == 0 else ()), *(drawn(chance) for _ in range(IN_A_CHILD))]
    asked = [[pattern, chance.random() < 0.5] for pattern in patterns]
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input="".join(f"{json.dumps(line)}\n" for line in asked),
        capture_output=True,
        text=True,
        check=False,
    )
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(replies) == len(asked), (patterns[len(replies)], done.stderr)
    for pattern, (_, kilobytes, seconds) in zip(patterns, replies, strict=True):
        assert kilobytes < 50 << 10, pattern
        assert seconds < 1, pattern
    assert any(said == "" for said, _, _ in replies)
    assert any("nodes" in said for said, _, _ in replies)
