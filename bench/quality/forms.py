"""What normal forms of words find, and what they cost.

    python -m bench forms
    python -m bench forms --sets musique --misspelt 100

Each corpus is indexed with forms and without. The questions' own words are searched in both ways in
the index with forms, misspelt titles in two calls of a model that takes the words suggested, and
identifiers of the source of an installed library by their parts, as a whole and with a dotted
prefix. Prints the figures and adds them to the file of results. See bench/studies/forms.md.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np

from arag_search.corpus import Chunk
from arag_search.evaluation.bootstrap import LEVEL, SEED, intervals, resampled_means
from arag_search.evaluation.text_match import evidence_recall
from arag_search.query import analysis
from arag_search.query.forms import parts_of
from arag_search.query.tree import Term
from arag_search.questions.files import Question, load_questions
from arag_search.search.index import Index, open_index
from bench.arguments import BenchParser, positive
from bench.data import corpus_file, sets_in
from bench.quality.data_sets import SETS
from bench.quality.question_words import words_query
from bench.report.rounds import interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.selection import FileSelection

NAME = "forms"
CUT = 10
_SHOWN = 3
_LIBRARY = "pydantic"
_NEEDS = 60
_CHECKERS: Mapping[str, tuple[Sequence[str], str]] = {
    "fi": (("voikkospell", "-M"), r"A\((\w+)\):\d+:BASEFORM=(\w+)"),
    **{
        language: (("hunspell", "-s", "-i", "utf-8", "-d", dictionary), r"(\w+) (\w+)")
        for language, dictionary in (
            ("de", "de_DE"),
            ("es", "es_ES"),
            ("fr", "fr"),
            ("ru", "ru_RU"),
        )
    },
}
"""The commands that print the stems of words, and what a line of theirs is."""
_NEAREST = re.compile(
    r'(?:nearest to )?(?:title:)?("[^"]+"|\S+?)(?: occurs nowhere; nearest)?: '
    r"(.*)"
)
_WORD = re.compile(r'(?:title:)?("[^"]+"|\w[\w.-]*) (?:more than )?[\d,]+')
_VOWELS = str.maketrans("aeiouclnszAEIOU", "áéíóúçłñšžÁÉÍÓÚ")


def main(arguments: Sequence[str]) -> int:
    """Measure, add the figures and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    parser.add_argument(
        "--sets", type=lambda text: tuple(text.split(",")), default=SETS, metavar="A,B"
    )
    parser.add_argument(
        "--texts",
        type=lambda text: tuple(pair.split("=", 1) for pair in text.split(",")),
        metavar="LANGUAGE=DIR,...",
        help="measure only inflected words of the texts in these folders, in de, es, fi, fr or ru; "
        "needs hunspell and voikkospell with their dictionaries",
    )
    parser.add_default("--misspelt", positive, 300, "misspelt titles of each corpus")
    parser.add_default("--identifiers", positive, 200, "identifiers")
    parser.add_default("--words", positive, 200, "words of each corpus, for false matches")
    parser.add_default("--rounds", positive, 5, "rounds of builds")
    parser.add_data()
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    with tempfile.TemporaryDirectory(prefix="arag-bench-", dir=options.work) as folder:
        figures = _figures(options, Path(folder))
    show(options.json, figures, circumstances(command, seed=SEED))
    return 0


def _figures(options: argparse.Namespace, work: Path) -> list[Figure]:
    if options.texts is not None:
        return [_language(language, folder, work) for language, folder in options.texts]
    figures: list[Figure] = []
    for name, folder in sets_in(options.data, options.sets).items():
        source = str(corpus_file(folder))
        figures.append(_costs(name, source, work, options.rounds))
        with open_index(work / "forms", search_timeout_s=None) as index:
            say(f"{name}: questions, titles and words")
            chunks = list(index.scan())
            questions = load_questions(folder / "questions.jsonl")
            figures += [
                _evidence(name, index, questions),
                _titles(name, index, chunks, options.misspelt),
                _false_matches(name, index, chunks, options.words),
            ]
    figures.append(_identifiers(work, options.identifiers))
    return figures


def _costs(name: str, source: str, work: Path, rounds: int) -> Figure:
    """Measure the time of a build with forms and its bytes, beside one without."""
    say(f"{name}: builds")

    def built(side: str, without: tuple[str, ...]) -> Callable[[], float]:
        options = BuildOptions(without=without, language="en", workers=0, overwrite=True)
        return lambda: timed(lambda: build_index([source], work / side, options))

    sides = {"forms": built("forms", ()), "written": built("written", ("forms",))}
    timings = interleaved(sides, rounds, warm_up=2)
    time = timings.ratio("forms", "written")
    ratio = _bytes(work / "forms") / _bytes(work / "written")
    rows = (
        Row.of_ratio("build", time, Target("at most", 1.35)),
        Row("bytes", ratio, "x", target=Target("at most", 1.6)),
    )
    return Figure(f"{name}: costs", rows, {})


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _evidence(name: str, index: Index, questions: Sequence[Question]) -> Figure:
    """Compare evidence recall@10 of the words of questions, by forms and as written."""
    values: list[list[float]] = []
    for question in questions:
        query = words_query(question.text)
        recalls: list[float] = []
        for text in (query, query.replace('"', '"=', 1).replace(' "', ' "=')):
            hits = index.logical_search(text, top_k=CUT, feedback=False, snippets=False).hits
            recalls.append(evidence_recall(question, [hit.title for hit in hits]))
        values.append([*recalls, recalls[0] - recalls[1]])
    table = np.array(values)
    means = resampled_means(table, [None] * len(values), name)
    names = ("forms", "written", "difference")
    estimates = intervals(list(table.mean(axis=0)), means, [LEVEL] * len(names))
    rows = [
        Row(f"{what}, recall@{CUT}", estimate.value, "", estimate.low, estimate.high)
        for what, estimate in zip(names, estimates, strict=True)
    ]
    return Figure(f"{name}: evidence", tuple(rows), {"questions": len(values)})


# Misspelt titles


def _titles(name: str, index: Index, chunks: Sequence[Chunk], count: int) -> Figure:
    """Measure how many misspelt titles are found among the first three hits within two calls."""
    random = Random(SEED)
    titles = sorted({chunk.title for chunk in chunks if _is_wordy(chunk.title)})
    chosen = random.sample(titles, min(count, len(titles)))
    by_kind: dict[str, list[bool]] = {}
    for title in chosen:
        kind, wrong = _misspelt(title, random)
        by_kind.setdefault(kind, []).append(_is_found(index, title, wrong))
    everything = [is_right for values in by_kind.values() for is_right in values]
    share = sum(everything) / len(everything)
    rows = [Row("found in two calls", share, "", target=Target("at least", 0.95))]
    rows += [Row(kind, sum(values) / len(values), "") for kind, values in sorted(by_kind.items())]
    return Figure(f"{name}: misspelt titles", tuple(rows), {"titles": len(everything)})


def _is_wordy(title: str) -> bool:
    return any(len(word) >= 5 and word.isalpha() for word in analysis.terms(title))


def _misspelt(title: str, random: Random) -> tuple[str, str]:
    """Return a kind of mistake, and the title with one in a word of five letters or more."""
    words = [word for word in analysis.tokens(title) if len(word.term) >= 5 and word.term.isalpha()]
    _, start, end = random.choice(words)
    word = title[start:end]
    at = random.randrange(1, len(word) - 1)
    kind = random.choice(("a letter", "an accent", "a hyphen", "an ending"))
    if kind == "a letter":
        wrong = random.choice(
            (word[:at] + word[at + 1 :], word[:at] + random.choice("aeinrst") + word[at:],
             word[:at] + word[at + 1] + word[at] + word[at + 2 :])
        )  # fmt: skip
    elif kind == "an accent":
        wrong = word[:at] + word[at].translate(_VOWELS) + word[at + 1 :]
    elif kind == "a hyphen":
        wrong = word[: at + 1] + "-" + word[at + 1 :]
    else:
        wrong = word[:-1] if word.endswith("s") else f"{word}s"
    return kind, title[:start] + wrong + title[end:]


def _is_found(index: Index, title: str, wrong: str) -> bool:
    """Return whether a title is among the first hits of its misspelt form or, in a second call, of
    that with the words that were suggested."""
    words = [word for word in wrong.split() if analysis.terms(word)]
    query = " AND ".join(f'title:"{word}"' for word in words)
    result = index.logical_search(query, top_k=_SHOWN)
    if any(hit.title == title for hit in result.hits):
        return True
    for note in result.notes:
        match = _NEAREST.match(note)
        if match is None:
            continue
        named = analysis.fold(match[1].strip('"'))
        for piece in query.split(" AND "):
            if named in analysis.fold(piece):
                query = query.replace(piece, f"title:({' OR '.join(_WORD.findall(match[2]))})")
    hits = index.logical_search(query, top_k=_SHOWN).hits
    return any(hit.title == title for hit in hits)


# False matches


def _false_matches(name: str, index: Index, chunks: Sequence[Chunk], count: int) -> Figure:
    """Count the passages that drawn words match by their normal form alone."""
    written: Counter[str] = Counter()
    for chunk in chunks:
        written.update(set(analysis.terms(f"{chunk.title} {chunk.content}")))
    words = [word for word in sorted(written) if word.isalpha() and len(word) > 2]
    drawn = Random(SEED).sample(words, min(count, len(words)))
    terms = [Term(word, language=index.manifest.language) for word in drawn]
    counts = index.engine.counts([(term, "chunk") for term in terms], None)
    by_form = dict(zip(drawn, counts, strict=True))
    more = {word: count - min(written[word], count) for word, count in by_form.items()}
    share = sum(more.values()) / max(1, sum(by_form.values()))
    rows = (
        Row("words with more matches by forms", sum(map(bool, more.values())) / len(drawn), ""),
        Row("passages that match by the form alone", share, ""),
    )
    examples = {word: (written[word], by_form[word]) for word in drawn if more[word]}
    return Figure(f"{name}: matches by forms", rows, {"written, with forms": examples})


# Languages


def _language(language: str, folder: str, work: Path) -> Figure:
    """Measure whether a passage that has one form of a word is found by another form. Which words
    are forms of each other is what a spelling checker says, of which our lemmas know nothing."""
    say(f"{language}: inflected words")
    build_index([folder], work / language, BuildOptions(language=language, overwrite=True))
    asked: list[tuple[str, str, bool]] = []
    with open_index(work / language, search_timeout_s=None) as index:
        words = {chunk.id: set(analysis.terms(chunk.content)) for chunk in index.scan()}
        wordy = sorted({w for of in words.values() for w in of if w.isalpha() and len(w) > 3})
        related: dict[str, set[str]] = {}
        for word, stem in _stems(language, wordy):
            related.setdefault(stem, set()).add(word)
        random = Random(SEED)
        groups = sorted(tuple(sorted(group)) for group in related.values() if len(group) > 1)
        for group in random.sample(groups, min(len(groups), 3 * _NEEDS)):
            query, held = random.sample(group, 2)
            passages = [id for id, terms in words.items() if held in terms and query not in terms]
            if passages and len(asked) < _NEEDS:
                hits = index.logical_search(query, top_k=1000, snippets=False, feedback=False).hits
                asked.append((query, held, {hit.id for hit in hits} >= set(passages)))
    share = sum(is_right for *_, is_right in asked) / len(asked)
    least = 0.85 if language == "fi" else 0.95
    row = Row("passages of another form", share, "", target=Target("at least", least))
    missed = [f"{query} - {held}" for query, held, is_right in asked if not is_right]
    return Figure(f"{language}: inflected words", (row,), {"needs": len(asked), "missed": missed})


def _stems(language: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with each of its stems; German nouns are asked as such, too."""
    command, line = _CHECKERS[language]
    asked = [spelling for word in words for spelling in dict.fromkeys((word, word.capitalize()))]
    done = subprocess.run(
        command, input="\n".join(asked), capture_output=True, encoding="utf-8", check=True
    )
    for match in re.finditer(rf"^{line}", done.stdout, re.MULTILINE):
        yield match[1].lower(), match[2].lower()


# Identifiers


def _identifiers(work: Path, count: int) -> Figure:
    """Measure whether the definition of a name in the source of a library is found by its parts, by
    the whole, and that of an attribute by a dotted name that ends with it."""
    spec = find_spec(_LIBRARY)
    source = Path(str(spec.origin)).parent if spec is not None else Path(__file__).parent
    folder = work / "source"
    shutil.copytree(source, folder, ignore=lambda _, names: [n for n in names if "__pyc" in n])
    options = BuildOptions(
        language="en", overwrite=True, files=FileSelection(include=("*.py",), root=str(folder))
    )
    build_index([str(folder)], work / "code", options)
    random = Random(SEED)
    drawn: list[tuple[str, str, str]] = []
    for kind, names in (("name", _names(folder)), ("dotted", _dotted_names(folder))):
        distinct = sorted(set(names))
        drawn += [(kind, *pair) for pair in random.sample(distinct, min(count, len(distinct)))]
    shares: dict[str, list[bool]] = {}
    with open_index(work / "code", search_timeout_s=None) as index:
        for kind, file, name in drawn:
            asked = {"a dotted prefix": f"{_LIBRARY}.{name}"}
            if kind == "name":
                asked = {"parts": f'"{" ".join(parts_of(name))}"', "the whole": f'"{name}"'}
            for form, query in asked.items():
                hits = index.logical_search(query, top_k=1000, snippets=False, feedback=False).hits
                shares.setdefault(form, []).append(any(hit.doc_id == file for hit in hits))
    rows = tuple(
        Row(kind, sum(values) / len(values), "", target=Target("at least", 0.95))
        for kind, values in shares.items()
    )
    return Figure("identifiers", rows, {"library": _LIBRARY, "names": len(drawn)})


def _names(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the file and the name of each definition with several parts."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = node.name.strip("_")
                if len(parts_of(name)) > 1:
                    yield str(path.relative_to(folder)), name


def _dotted_names(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the file and the name of each attribute of a name, such as ``schema.title``."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names = (node.value.id, node.attr)
                if not any(name.startswith("_") for name in names):  # where the analyser cuts
                    yield str(path.relative_to(folder)), ".".join(names)
