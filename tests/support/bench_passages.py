"""A corpus of made-up passages that benches run on."""

from arag_search.corpus import Chunk

WORDS = ["the", "opera", "composer", "wrote", "a", "libretto", "about", "Griselda", "in", "Venice"]


def chunk(number: int, *sentences: str) -> Chunk:
    """Build a chunk of these sentences."""
    content = "".join(sentences)
    ends = [sum(map(len, sentences[: n + 1])) for n in range(len(sentences))]
    identifier = f"c-{number}"
    title = f"Passage {number}"
    return Chunk(identifier, identifier, title, content, 1, 1, number << 11, tuple(ends), {})


def passages(count: int) -> list[Chunk]:
    """Build chunks of two sentences; neighbouring chunks have different words."""
    return [
        chunk(
            number,
            f"{' '.join(WORDS[number % 5 :])} {number}. ",
            f"{WORDS[number % 7].capitalize()} was shown in {1700 + number}.",
        )
        for number in range(count)
    ]
