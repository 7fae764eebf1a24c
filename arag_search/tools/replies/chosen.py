"""The sentences of each passage that a search shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from arag_search.corpus import PATH_MARK, split_at
from arag_search.engines.hits import Hit
from arag_search.query import analysis
from arag_search.search.results import SearchResult
from arag_search.tokens import count_tokens, count_up_to
from arag_search.tools.replies.block import Block, passage_block, without_visible
from arag_search.tools.replies.copies import NearCopy, near_copies
from arag_search.tools.replies.writing import header_line
from arag_search.tools.tool import ReadSet

SNIPPET_TOKENS = 48
"""A snippet is extended by the sentences after its matches up to this many o200k tokens."""
SHORT_TOKENS = 32
MANUAL_TOKENS = 320
MANUAL_HITS = 3
GAP_TOKENS = 24
"""A gap of so many tokens costs as much as its count, and is closed."""
LED_TOKENS = 48
BLOCK_TOKENS = 64
ENTRY_TOKENS = 200
NAMED_TOKENS = 256
NAMED_SENTENCES = 9
NAMED_ROOM = 384

_NAME = re.compile(r"\W*([A-Z][^\W\d_]{2,})\b")
_LEADS = re.compile(
    r"(?:E\.g\.|For example|Examples?|Note)\b|.*:$"
    r"|[^\n#|$]{1,60}(?<![.!?;)])$|\W*\w+(?: \([^)\n]*\))?: ",
    re.DOTALL,
)
"""A sentence that leads to what follows: its end or beginning says so, or it is a term."""
_ITEM = re.compile(r"\s*(?:[-*\u2022]|\d+[.)]) |[^\n]* \| ")
_CODE = re.compile(r"[^\n.!?]\n[^\n]")
"""A line that does not end as a sentence does: of code, a list or a table."""
_PRONOUNS = frozenset({
    "he", "she", "it", "they", "his", "her", "hers", "its", "their", "theirs", "him", "them",
    "this", "that", "these", "those", "there", "such",
    "er", "sie", "es", "ihr", "ihre", "sein", "seine", "dieser", "diese", "dieses", "dort",
    "il", "elle", "ils", "elles", "son", "sa", "ses", "leur", "leurs", "ce", "cet", "cette", "ces",
    "él", "ella", "ellos", "ellas", "su", "sus", "este", "esta", "esto", "ese", "esa", "eso",
    "lui", "lei", "loro", "suo", "sua", "questo", "questa", "ele", "ela", "eles", "elas", "seu",
    "он", "она", "оно", "они", "его", "её", "их", "этот", "эта", "это", "эти",
})  # fmt: skip
"""Words that refer to something named before, in several languages."""


class Passage(NamedTuple):
    """A hit with its sentences. ``fits`` is whether it is short enough to be shown whole,
    ``is_brief`` whether only its best sentence is shown. ``copies`` are its near copies; None: it
    is one itself."""

    hit: Hit
    sentences: Sequence[str]
    fits: bool
    copies: Sequence[NearCopy] | None = ()
    is_brief: bool = False


def nothing_of_a_copy(passage: Passage) -> list[int] | None:
    """Show nothing of a near copy of a passage above it but an id in a line."""
    return [] if passage.copies is None else None


def sentences_that_match(passage: Passage) -> list[int] | None:
    """Show the matching sentences in a search of sentences, whose hits have no other text."""
    return None if all(passage.sentences) else sorted(set(passage.hit.sentences))


def whole_passage(passage: Passage) -> list[int] | None:
    """Show a passage whole that is short enough, or asked for so."""
    return list(range(len(passage.sentences))) if passage.fits else None


def snippet(passage: Passage) -> list[int] | None:
    """Show of any other the best sentences for the query, and what SNIPPET adds to them."""
    chosen = {passage.hit.best} if passage.is_brief else set(passage.hit.sentences)
    if chosen and passage.sentences:
        for add in SNIPPET:
            chosen.update(add(passage, chosen))
        if is_headless(passage.sentences, min(chosen), passage.hit.title):
            chosen.add(min(chosen) - 1)
    return sorted(chosen)


RULES = (nothing_of_a_copy, sentences_that_match, whole_passage, snippet)
"""The rules that choose the sentences of a passage to show. The first rule that gives numbers
decides; sentences that are still visible are left out. Measured in bench/studies/replay.md."""


def after_the_title(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the next sentence, if the chosen ones say no more than the title."""
    known = set(analysis.terms(passage.hit.title))
    texts = (passage.sentences[number] for number in chosen)
    if any(not known.issuperset(analysis.terms(text)) for text in texts):
        return ()
    return range(max(chosen) + 1, min(max(chosen) + 2, len(passage.sentences)))


def first_if_named(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the first sentence of a passage whose title the query names, which says what it is; the
    first two if nothing else matches."""
    most = min(len(passage.sentences), 2 if max(chosen) == 0 else 1)
    return range(most if passage.hit.is_named else 0)


def led_to(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the text that chosen sentences lead to, LED_TOKENS at most. A colon or the beginning of
    an example leads to a list, or to the text up to an empty line. A term leads to its
    definition."""
    sentences, unit_of = passage.sentences, passage.hit.outline.unit_of
    added: set[int] = set()
    for number in chosen:
        room = LED_TOKENS if _LEADS.match(sentences[number].strip("\n ")) else 0
        for below in range(number + 1, len(sentences)) if room else ():
            above, text = sentences[below - 1], sentences[below]
            is_apart = above.endswith("\n\n") and not _ITEM.match(text)
            is_led = below == number + 1 and above.strip()[-1:] not in ".!?"
            room -= 0 if below in chosen else count_tokens(text)
            if room < 0 or (is_apart and not is_led) or unit_of(below) != unit_of(number):
                break
            added.add(below)
    return added


def blocks_around(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the lines of code or rows of a table around each chosen one, and the sentence that a
    chosen one continues. First come those below it; BLOCK_TOKENS at most."""
    sentences = passage.sentences
    added: set[int] = set()
    for number in chosen:
        room = BLOCK_TOKENS - len(sentences[number]) // 4
        for step in (1, -1):
            beside = number + step
            while 0 <= beside < len(sentences):
                first = min(beside, beside - step)
                if not _are_one(sentences[first], sentences[first + 1]):
                    break
                room -= count_tokens(sentences[beside])
                if room < 0:
                    break
                added.add(beside)
                beside += step
    return added


def _are_one(above: str, below: str) -> bool:
    """Return whether two sentences are lines of one block of code, rows of one table, or one."""
    if above.rstrip()[-1:] in ".!?":
        return False
    is_code = above.endswith("\n") and not above.endswith("\n\n")
    return is_code or (" | " in above and " | " in below) or below[:1].islower()


def gaps(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the sentences of each gap that has at most GAP_TOKENS."""
    added: set[int] = set()
    before = -1
    for number in (*sorted(chosen), len(passage.sentences)):
        gap = range(before + 1, number)
        if gap and count_up_to("".join(passage.sentences[gap.start : number]), GAP_TOKENS):
            added.update(gap)
        before = number
    return added


def below_names(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the sentences below the names of units that are chosen, ENTRY_TOKENS at most and not into
    another unit."""
    sentences, units = passage.sentences, passage.hit.outline.units
    openings = {unit.first for unit in units}
    added: set[int] = set()
    room = ENTRY_TOKENS
    for unit in units:
        word = unit.name.rpartition(" ")[2]
        within = range(unit.first, unit.end)
        named = next((n for n in within if word in sentences[n]), unit.first)  # below comments
        for below in within[named + 1 - unit.first :] if named in chosen else ():
            room -= count_tokens(sentences[below])
            if below in openings or room < 0:
                break
            added.add(below)
    return added


def following(passage: Passage, chosen: Collection[int]) -> Iterable[int]:
    """Add the sentence after each chosen one, in the same unit. It is added if it begins with a
    pronoun, or while the snippet has at most SNIPPET_TOKENS."""
    sentences, unit_of = passage.sentences, passage.hit.outline.unit_of
    after = [n + 1 for n in sorted(chosen) if n + 1 < len(sentences) and n + 1 not in chosen]
    after = [number for number in after if unit_of(number) == unit_of(number - 1)]
    added = {number for number in after if begins_with_pronoun(sentences[number])}
    if len(added) == len(after):
        return added
    room = SNIPPET_TOKENS
    for number in dict.fromkeys((*chosen, *added, *after)):
        if (tokens := count_up_to(sentences[number], room)) is None:
            break
        room -= tokens
        added.add(number)
    return added


SNIPPET: Sequence[Callable[[Passage, Collection[int]], Iterable[int]]] = (
    after_the_title,
    first_if_named,
    below_names,
    led_to,
    blocks_around,
    following,
    gaps,
)
"""The functions that add sentences to a snippet, in this order."""


def is_headless(sentences: Sequence[str], first: int, title: str) -> bool:
    """Return whether a snippet needs the sentence before its first one. It does if that one begins
    with a pronoun, after a short sentence. It does too if it begins with the last name of somebody
    whom the sentence before names in full and the title does not."""
    if first and begins_with_pronoun(sentences[first]):
        return count_up_to(sentences[first - 1], SHORT_TOKENS) is not None
    name = _NAME.match(sentences[first])
    if not first or name is None or name[1] in title:
        return False
    return re.search(rf"[A-Z][\w.]* {name[1]}\b", sentences[first - 1]) is not None


def begins_with_pronoun(sentence: str) -> bool:
    """Return whether the first word of a sentence refers to something before it."""
    words = sentence.split(maxsplit=1)
    return bool(words) and words[0].strip("\"'“‘«(,").lower() in _PRONOUNS


def _is_manual(hit: Hit) -> bool:
    """Return whether a passage has entries or code, whose answers often stand beside matches."""
    return bool(hit.outline.units) or _CODE.search(hit.content) is not None


def passages_of(hits: Sequence[Hit], whole_up_to: int | None) -> list[Passage]:
    """Return hits with what the rules ask. A passage fits if it has at most ``whole_up_to`` o200k
    tokens; None allows any number. If the query names its title, it may have NAMED_TOKENS in at
    most NAMED_SENTENCES, while the passages above it leave so much of NAMED_ROOM. The first hit, if
    in a manual, fits up to MANUAL_TOKENS. Hits in manuals after MANUAL_HITS are brief."""
    room = NAMED_ROOM
    passages: list[Passage] = []
    for at, hit in enumerate(hits):
        fits, is_brief = whole_up_to is None, False
        if whole_up_to:
            is_named = hit.is_named and len(hit.sentence_ends) <= NAMED_SENTENCES
            most = max(min(NAMED_TOKENS, room) if is_named else 0, whole_up_to)
            if at in (0, *range(MANUAL_HITS, len(hits))) and _is_manual(hit):
                most, is_brief = (most, True) if at else (MANUAL_TOKENS, False)
            tokens = count_up_to(hit.content, most)
            fits = tokens is not None
            room -= tokens or 0
        sentences = split_at(hit.content, hit.sentence_ends)
        passages.append(Passage(hit, sentences, fits, is_brief=is_brief))
    return passages


def block_of(passage: Passage, at: int, read_set: ReadSet) -> Block:
    """Return a passage with what the rules show of it. ``at`` is its place among the hits."""
    hit = passage.hit
    path = PATH_MARK.join(filter(None, (hit.outline.path, *hit.beside)))
    outline = hit.outline._replace(path=path) if hit.beside else hit.outline
    header = header_line(hit.id, hit.title, hit.part, hit.parts, outline)
    same = list(passage.copies or ())
    block = passage_block(hit, header, passage.sentences, at=at, same=same, outline=hit.outline)
    numbers = next(numbers for rule in RULES if (numbers := rule(passage)) is not None)
    without_visible(block, numbers, read_set)
    is_visible = read_set.is_kept and block.before.issuperset(hit.sentences)
    if hit.sentences and is_visible and not (passage.fits or hit.is_named):
        block.shown, block.left_out, block.by_sentence = [], "shown", True
    return block


def blocks_of(result: SearchResult, read_set: ReadSet, whole_up_to: int | None) -> list[Block]:
    """Return the blocks of hits, in order. A near copy has none; the passage beside it names it."""
    copies = near_copies(result.hits, result.typed_in)
    return [
        block_of(passage._replace(copies=same), at, read_set)
        for at, (passage, same) in enumerate(
            zip(passages_of(result.hits, whole_up_to), copies, strict=True)
        )
        if same is not None
    ]
