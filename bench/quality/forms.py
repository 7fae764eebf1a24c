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
import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from random import Random

from arag_search.corpus import Chunk
from arag_search.evaluation.bootstrap import SEED
from arag_search.evaluation.measurement import ranking_values
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.text_match import evidence_recall
from arag_search.plan.clauses import ResolvedPlan, words_clause
from arag_search.query import analysis
from arag_search.query.forms import NONE, folded, languages, normal_terms, parts_of
from arag_search.questions.files import Question, load_questions
from arag_search.search.hits import SearchHit
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.data import corpus_file, sets_in
from bench.quality.data_sets import SETS
from bench.quality.packages import copied_library, definitions_in, index_files
from bench.quality.question_words import words_query
from bench.report.estimates import means
from bench.report.rounds import interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

NAME = "forms"
CUT = 10
_NDCG = f"nDCG@{CUT}"
_READ = 17
"""Matches by forms of each corpus for a reader."""
_SHOWN = 3
_LIBRARY = "pydantic"
_NEEDS = 60
_INFLECTIONS: Mapping[str, tuple[str, str]] = {
    "ar": ("utf-8", "(NOUN)|VERB"),
    "de": ("utf-8", "(SUB|EIG|ADJ|PA[12])|VER"),
    "es": ("utf-8", "([NA])|V"),
    "fr": ("utf-8", "([NJZ]) |V "),
    "fa": ("utf-8", "(NOUN)|VERB"),
    "ko": ("utf-8", "(NOUN)"),
    "ru": ("koi8-r", "(NN|ADJ)|VB|PT|DPT"),
}
"""The encoding of the list of inflected words of a language, and how tags of nouns, adjectives and
verbs with their participles begin."""
_UNSPACED = ("th",)
"""Languages whose words have no blanks between them."""
_FINNISH = re.compile(
    r"^A\((\w+)\):\d+:BASEFORM=(\w+)\nA\(\w+\):\d+:CLASS=(nimi|laatu|teon|etu|suku|paikan)", re.M
)
"""What voikkospell says of a noun, adjective, verb or name."""
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
        help="measure only inflected words of the texts in these folders, in ar, de, es, fa, fi, "
        "fr, ko or ru; of th, words in texts without blanks",
    )
    parser.add_argument(
        "--inflections",
        type=Path,
        metavar="DIR",
        help="lists of inflected words for --texts: de.txt and so on, as dict_decompile of "
        "morfologik-tools writes them; Finnish needs voikkospell instead",
    )
    parser.add_argument(
        "--manuals",
        type=lambda text: tuple(map(Path, text.split(","))),
        metavar="DIR,...",
        help="measure only names of the manuals of PostgreSQL or Python in these folders",
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
        return [
            _unspaced(language, folder, work)
            if language in _UNSPACED
            else _language(language, folder, options.inflections, work)
            for language, folder in options.texts
        ]
    if options.manuals is not None:
        return [_manual(folder, work, options.identifiers) for folder in options.manuals]
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
    for name, folder in sets_in(options.data, ("limit",)).items():
        figures.append(_judged(name, folder, work))
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
        hits = (_first(index, query) for query in _queries(question))
        values.append([evidence_recall(question, [hit.title for hit in of]) or 0.0 for of in hits])
    return _compared(f"{name}: evidence", f"recall@{CUT}", values)


def _judged(name: str, folder: Path, work: Path) -> Figure:
    """Compare nDCG@10 of the words of judged needs, by forms and as written."""
    say(f"{name}: judged needs")
    build_index([str(corpus_file(folder))], work / name, BuildOptions(language="en"))
    needs = load_questions(folder)
    relevant = {need.id: dict(need.relevant_documents) for need in needs}
    sides: list[Mapping[str, Mapping[str, float]]] = []
    with open_index(work / name, search_timeout_s=None) as index:
        for side in (0, 1):
            ranked = {
                need.id: list(dict.fromkeys(h.doc_id for h in _first(index, _queries(need)[side])))
                for need in needs
            }
            sides.append(ranking_values(parse_measures([_NDCG]), relevant, ranked))
    return _compared(
        f"{name}: judged", _NDCG, [[values[id][_NDCG] for values in sides] for id in sides[0]]
    )


def _queries(question: Question) -> tuple[str, str]:
    """Return the words of a question as a query for forms, and for words as they are written."""
    query = words_query(question.text)
    return query, query.replace('"', '"=', 1).replace(' "', ' "=')


def _first(index: Index, query: str, count: int = CUT) -> Sequence[SearchHit]:
    return index.logical_search(query, top_k=count, feedback=False, snippets=False).hits


def _compared(name: str, measure: str, values: Sequence[Sequence[float]]) -> Figure:
    """Estimate a measure by forms, as written, and the difference."""
    columns = {
        f"forms, {measure}": [forms for forms, _ in values],
        f"written, {measure}": [written for _, written in values],
        f"difference, {measure}": [forms - written for forms, written in values],
    }
    return Figure(name, means(columns, name), {"questions": len(values)})


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
    clauses = (words_clause(word, index.manifest.language, None, "word") for word in drawn)
    counts = index.engine.counts([(ResolvedPlan(clause), "chunk") for clause in clauses], None)
    by_form = dict(zip(drawn, counts, strict=True))
    more = {word: count - min(written[word], count) for word, count in by_form.items()}
    share = sum(more.values()) / max(1, sum(by_form.values()))
    rows = (
        Row("words with more matches by forms", sum(map(bool, more.values())) / len(drawn), ""),
        Row("passages that match by the form alone", share, ""),
    )
    examples = {word: (written[word], by_form[word]) for word in drawn if more[word]}
    random = Random(SEED)
    read = [
        _match(index, word, random)
        for word in random.sample(sorted(examples), min(_READ, len(examples)))
    ]
    details = {"written, with forms": examples, "word, passage, sentence": read}
    return Figure(f"{name}: matches by forms", rows, details)


def _match(index: Index, word: str, random: Random) -> tuple[str, str, str]:
    """Draw a passage that a word matches by its form alone; return it with the sentences that
    have the form."""
    query = f'"{word}" AND NOT "={word}"'
    hit = random.choice(index.logical_search(query, top_k=1000, feedback=False).hits)
    return word, hit.id, hit.snippet.strip() or hit.title


# Languages


def _language(language: str, folder: str, inflections: Path | None, work: Path) -> Figure:
    """Measure whether a passage that has one form of a word is found by another form, also if it is
    typed without accents, and how many of the words that have one form are no forms of each other.
    Which are is what a dictionary says, of which our lemmas know nothing."""
    say(f"{language}: inflected words")
    lemmas = language if language in languages() else NONE
    least = 2 if language == "ko" else 4
    build_index([folder], work / language, BuildOptions(language=lemmas, overwrite=True))
    asked: list[tuple[str, str, bool, bool]] = []
    with open_index(work / language, search_timeout_s=None) as index:
        words = {chunk.id: set(analysis.terms(chunk.content)) for chunk in index.scan()}
        wordy = {word for word in chain(*words.values()) if word.isalpha() and len(word) >= least}
        related: dict[tuple[str, str], set[str]] = {}
        for word, *lemma in _lemmas(language, wordy, inflections):
            related.setdefault((lemma[0], lemma[1]), set()).add(word)
        random = Random(SEED)
        groups = sorted({tuple(sorted(group)) for group in related.values() if len(group) > 1})
        for group in random.sample(groups, min(len(groups), 3 * _NEEDS)):
            query, held = random.sample(group, 2)
            passages = {id for id, terms in words.items() if held in terms and query not in terms}
            if passages and len(asked) < _NEEDS:
                is_found, is_found_plain = (
                    passages <= {hit.id for hit in _first(index, text, 1000)}
                    for text in (query, folded(query))
                )
                asked.append((query, held, is_found, is_found_plain))
    joined = [
        [len({normal_terms(word, lemmas)[0] for word in pair}) == 1 for pair in combinations(g, 2)]
        for g in groups
    ]
    aim = 0.85 if language == "fi" else 0.95
    rows = (
        Row(
            "passages of another form",
            _mean([need[2] for need in asked]),
            "",
            target=Target("at least", aim),
        ),
        Row("the same, typed without accents", _mean([need[3] for need in asked]), ""),
        Row("pairs of a word's forms, a word's mean", sum(map(_mean, joined)) / len(joined), ""),
        Row("words of one form that are not of one word", _unrelated(related, lemmas), ""),
    )
    missed = [f"{query} - {held}" for query, held, is_right, _ in asked if not is_right]
    return Figure(f"{language}: inflected words", rows, {"needs": len(asked), "missed": missed})


def _unspaced(language: str, folder: str, work: Path) -> Figure:
    """Measure in a file of lines, each a text with | between its words, whether a word finds the
    lines that have it when they stand there without, and how many that it finds have it not."""
    say(f"{language}: words without blanks")
    lines = Path(folder, f"{language}.txt").read_text("utf-8").splitlines()
    source = work / "lines.jsonl"
    texts = (
        json.dumps({"id": str(at), "text": line.replace("|", "")}) for at, line in enumerate(lines)
    )
    source.write_text("\n".join(texts), "utf-8")
    build_index([str(source)], work / language, BuildOptions(language=NONE, overwrite=True))
    having: dict[str, set[str]] = {}
    for at, line in enumerate(lines):
        for word in line.split("|"):
            having.setdefault(word, set()).add(str(at))
    words = sorted(word for word in having if len(word) > 1 and analysis.is_unspaced(word))
    asked = [word for word in Random(SEED).sample(words, len(words)) if len(having[word]) < 500]
    recalls: list[float] = []
    others: list[float] = []
    with open_index(work / language, search_timeout_s=None) as index:
        for word in asked[: 5 * _NEEDS]:
            matches = {hit.doc_id for hit in _first(index, f'"{word}"', 1000)}
            recalls.append(len(matches & having[word]) / len(having[word]))
            others += [len(matches - having[word]) / len(matches)] if matches else []
    rows = (
        Row("passages of a word", _mean(recalls), ""),
        Row("passages found that have another word", _mean(others), ""),
    )
    return Figure(f"{language}: words without blanks", rows, {"needs": len(recalls)})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _unrelated(related: Mapping[tuple[str, str], set[str]], language: str) -> float:
    """Return the share of unrelated words among the words with its form, a word's mean."""
    lemmas: dict[str, set[str]] = {}
    for (lemma, _), group in related.items():
        for word in group:
            lemmas.setdefault(word, set()).add(lemma)
    same: dict[str, list[str]] = {}
    for word in lemmas:
        same.setdefault(normal_terms(word, language)[0], []).append(word)
    shares = [
        sum(lemmas[word].isdisjoint(lemmas[other]) for other in group) / len(group)
        for group in same.values()
        for word in group
    ]
    return _mean(shares)


def _lemmas(
    language: str, words: Collection[str], inflections: Path | None
) -> Iterator[tuple[str, str, str]]:
    """Yield words with each of their lemmas and its part of speech."""
    if language == "fi":
        asked = "\n".join(spelt for word in sorted(words) for spelt in (word, word.capitalize()))
        done = subprocess.run(
            ("voikkospell", "-M"), input=asked, capture_output=True, encoding="utf-8", check=True
        )
        for match in _FINNISH.finditer(done.stdout):
            yield match[1].lower(), match[2].lower(), match[3]
        return
    if inflections is None:
        raise BenchError("The lists of inflected words are missing.", allowed="--inflections DIR")
    encoding, tags = _INFLECTIONS[language]
    line = re.compile(rf"(.+?)[_+](.+?)[_+](?:{tags})")
    with (inflections / f"{language}.txt").open(encoding=encoding, errors="replace") as file:
        for match in filter(None, map(line.match, file)):
            if (word := match[2].lower()) in words:
                yield word, match[1].lower(), match[3] or "verb"


# Identifiers


def _identifiers(work: Path, count: int) -> Figure:
    """Measure whether the definition of a name in the source of a library is found by its parts, by
    the whole, and that of an attribute by a dotted name that ends with it."""
    folder = work / "source"
    copied_library(_LIBRARY, folder)
    index_files(folder, work / "code", ("*.py",))
    random = Random(SEED)
    drawn: list[tuple[str, str, str]] = []
    for kind, names in (("name", _names(folder)), ("dotted", _dotted_names(folder))):
        distinct = sorted(set(names))
        drawn += [(kind, *pair) for pair in random.sample(distinct, min(count, len(distinct)))]
    asked: list[tuple[str, str, str]] = []
    for kind, file, name in drawn:
        if kind == "name":
            asked.append((file, "parts", f'"{" ".join(parts_of(name))}"'))
            asked.append((file, "the whole", f'"{name}"'))
        else:
            asked.append((file, "a dotted prefix", f"{_LIBRARY}.{name}"))
    rows = _shares_found(work / "code", asked)
    return Figure("identifiers", rows, {"library": _LIBRARY, "names": len(drawn)})


def _shares_found(location: Path, asked: Sequence[tuple[str, str, str]]) -> tuple[Row, ...]:
    """Return for each kind of query how many find their document; ``asked`` are documents, kinds
    and queries."""
    shares: dict[str, list[bool]] = {}
    with open_index(location, search_timeout_s=None) as index:
        for document, kind, query in asked:
            hits = _first(index, query, 1000)
            shares.setdefault(kind, []).append(any(hit.doc_id == document for hit in hits))
    return tuple(
        Row(kind, _mean(values), "", target=Target("at least", 0.95))
        for kind, values in shares.items()
    )


def _names(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the file and the name of each definition with several parts."""
    for definition in definitions_in(folder):
        name = definition.name.strip("_")
        if len(parts_of(name)) > 1:
            yield definition.file, name


def _dotted_names(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the file and the name of each attribute of a name, such as ``schema.title``."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names = (node.value.id, node.attr)
                if not any(name.startswith("_") for name in names):  # where the analyser cuts
                    yield str(path.relative_to(folder)), ".".join(names)


_ANCHOR = re.compile(r'id="(?:GUC-([A-Z0-9-]+)|([a-z]\w+\.\w+))"')
"""A setting of PostgreSQL, or a name in a module of Python's library."""


def _manual(folder: Path, work: Path, count: int) -> Figure:
    """Measure whether the page of a manual that describes a name is found by its parts, by the
    whole and, where it is dotted, by a longer dotted name."""
    say(f"{folder.name}: names")
    names = {
        (page.relative_to(folder).as_posix(), setting.lower().replace("-", "_") or dotted)
        for page in sorted(folder.rglob("*.html"))
        for setting, dotted in _ANCHOR.findall(page.read_text("utf-8", "replace"))
    }
    drawn = Random(SEED).sample(sorted(names), min(count, len(names)))
    index_files(folder, work / "manual")
    asked: list[tuple[str, str, str]] = []
    for page, name in drawn:
        asked.append((page, "the whole", name))
        if len(parts := parts_of(name)) > 1:
            asked.append((page, "parts", f'"{" ".join(parts)}"'))
        if "." in name:
            asked.append((page, "a dotted prefix", f"python.{name}"))
    rows = _shares_found(work / "manual", asked)
    return Figure(f"{folder.name}: names", rows, {"names": len(drawn)})
