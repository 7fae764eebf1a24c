"""The lemmas of the words of a language: from its dictionary, and by endings that join words which
the dictionary keeps apart.

A rule is an ending behind two letters or more, as a regular expression, and what may stand instead,
with blanks between. It counts only if the dictionary knows the word that it makes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce

from arag_search.query import dictionaries
from arag_search.query.typography import accents_off, plain_letters

NONE = "none"
"""The language of an index whose words have no lemmas; all other steps apply."""

_Rules = tuple[tuple[str, str], ...]

_CASE = "(?:n|t|(?:ss|st|ll|lt|n)[aä]|lle|ksi|[aä]n?)"
_CASE_OF_I = "i(?:i?n|(?:ss|st|ll|lt|n)[aä]|lle|ksi|[aä]|en)"
_POSSESSIVE = "(?:ni|si|mme|nne|ns[aä])"
_ENCLITIC = "(?:kin|k[aä]{2}n|k[oö]|h[aä]n|p[aä])"
_FINNISH_NEN = f"(?<=i)s(?:t?en|een|t[aä]|e{_CASE}|{_CASE_OF_I})"
_CLITIC = "(?:se|me|te|nos|os|l[aeo]s?)"
_PREFIX = (
    "(?:ab|an|auf|aus|bei|da|dar|durch|ein|fest|fort|frei|her|heraus|herunter|hin|hinzu|los|mit"
    "|nach|um|vor|weg|wieder|zu|zurück|zusammen)"
)
_SEPARATED: _Rules = (  # anzufangen, angefangen, eingefärbten
    (f"^({_PREFIX})(?:zu|ge)(.+en)(?:e[mnrs]?)?", r"\1\2"),
    (f"^({_PREFIX})ge(.+)t(?:e[mnrs]?)?", r"\1\2en"),
)
_ADJECTIVE = "(?:[оеыи][йем]|[ыи]х|[ыи]ми|[ое]го|[ое]му|ая|яя|ую|юю)"
_PARTICIPLES: _Rules = (
    (f"[её]н(?:о|н{_ADJECTIVE})?", "ить еть"),
    (f"ан(?:о|н{_ADJECTIVE})?", "ать"),
    (f"ующ{_ADJECTIVE}(ся)?", r"овать\1 евать\1"),
    (f"[аяую]щ{_ADJECTIVE}(ся)?", r"ать\1 ять\1 ить\1 еть\1"),
    (f"вш{_ADJECTIVE}(ся)?", r"ть\1"),
    (f"ем{_ADJECTIVE}", "ть"),
)
_OPEN = "".join(map(chr, range(0xAC00, 0xD7A4, 28)))
"""The syllables of Korean that end in a vowel."""
_OPEN_OR_L = _OPEN + "".join(map(chr, range(0xAC08, 0xD7A4, 28)))
_PARTICLE = re.compile(
    rf"""(?<=.)(?: 에 | 에게 | 에게서 | 에서 | 까지 | 마다 | 밖에 | 보다 | 부터 | 처럼
            | (?<![{_OPEN}])(?: 을 | 은 | 으로 ) | (?:(?<=[{_OPEN}])|(?<![가-힣]))(?: 를 | 는 ))$
      | (?:(?<=..)|(?<=[^가-힣]))(?: 의 | 도 | 만 | 들 | 께 | 께서 | 뿐 | 대로 | 만큼 | 조차 | 마저
            | 하고 | 한테 | 한테서
            | (?<![{_OPEN}])(?: 이 | 과 | 이나 | 이며 | 이란 | 이라고 | 이라는 | 이라도
                | 으로서 | 으로써 )
            | (?:(?<=[{_OPEN}])|(?<![가-힣]))(?: 가 | 와 | 나 | 며 )
            | (?:(?<=[{_OPEN_OR_L}])|(?<![가-힣]))(?: 로 | 로서 | 로써 ))$""",
    re.VERBOSE,
)
"""A Korean particle at the end of a word. Most need two syllables before them, since shorter nouns
end so too; some depend on the last sound of the word."""


def without_particles(word: str) -> str:
    """Return a Korean word without its particles (도서관에서는, 도서관)."""
    while stem := _PARTICLE.sub("", word):
        if stem == word:
            break
        word = stem
    return word


_OF_UNKNOWN_WORDS: Mapping[str, _Rules] = {
    "ar": (  # وبالملفات, للملف, سيفتح
        ("^[وف](.+)", r"\1"),
        ("^[وف]?[بك](.+)", r"\1"),
        ("^[وف]?لل(.+)", r"\1"),
        ("^[وف]?[لس](.+)", r"\1"),
    ),
    "de": (
        *_SEPARATED,
        ("^ge(.+)t(?:e[mnrs]?)?", r"\1en"),
        ("^ge(.+en)(?:e[mnrs]?)?", r"\1"),
        ("(?:e[mnrs]?|s)", ""),
    ),
    "fi": (  # muutetun, ladattavissa, oheisten, upoteta, kutsuneita, sivukin, talossani
        (f"(?<=[aeiouyäöt]t)([uy])(?:{_CASE}|{_CASE_OF_I}|j[aä]|jen|[uy]n|ihin)", r"\1 t\1"),
        (f"(?<=[oö]i)d([uy])(?:{_CASE}|{_CASE_OF_I})", r"t\1"),
        (f"(?<=[vm])(?:[aä]{_CASE}|{_CASE_OF_I})", "a ä"),
        (_FINNISH_NEN, "nen"),
        ("(?<=t)et[aä]", "taa tää"),
        (f"n(?:ee(?:seen|{_CASE})|ei(?:den|siin|t[aä]|{_CASE}))", "nut nyt"),
        (_ENCLITIC, ""),
        (f"kse(?:{_POSSESSIVE}|en){_ENCLITIC}?", " ksi"),
        (f"((?:ss|st|ll|lt|t|j)[aä]|lle)(?:{_POSSESSIVE}|[aäe]n){_ENCLITIC}?", r"\1"),
        (f"(n)(?:s[aä]|i){_ENCLITIC}?", r"\1"),
        (f"{_POSSESSIVE}{_ENCLITIC}?", " n t"),
    ),
    "es": (
        (f"([áéí]r|[áé]ndo){_CLITIC}{{1,2}}", r"\1"),
        (f"(?<=[aeinr]){_CLITIC}", ""),
    ),
    "fa": (("ها(?:يي?|[متش]ان|[متش])?", ""), ("يي?", "")),
    "fr": (
        ("(?:ée?s?|ante?s?|i?ez|i?ons|ent|ait|aient|er(?:a|ai|as|ez|ons|ont|ait|aient))", "er"),
    ),
    "ru": (
        ("^(.*)ё(.*)", r"\1е\2"),
        *_PARTICIPLES,
        (f"{_ADJECTIVE}(ся)?", r"ый\1 ий\1 ой\1"),
        ("[её]н[аы]", "ить еть"),
        ("ан[аы]", "ать"),
        ("([аяи])в(?:ши)?", r"\1ть"),
        ("([ая])я", r"\1ть"),
    ),
}
"""The rules for words that the dictionary does not know: endings of inflected words."""

_OF_LEMMAS: Mapping[str, _Rules] = {
    "de": (
        *_SEPARATED,
        ("^(.*ge.+t)e", r"\1"),
        ("^((?:be|ent|er|ver|zer).+|.+ier)te?", r"\1en"),
        ("end", "en"),
    ),
    "es": (
        (f"(?<=[aei]r){_CLITIC}", ""),
        ("(?<=...)(?:ad[oa]|[oae]|ando)", "ar er ir"),
        ("(?:id[oa]|iendo)", "er ir"),
        ("ón", "onar"),
    ),
    "fi": (
        (r"([kpt]?)\1([aä])\2minen", r"\1\2t\2"),
        ("(?<=[oö]i)minen", "da dä"),
        ("(?<=it)seminen", "a ä"),
        ("minen", "a ä"),
        (r"([lnr])e(?:minen|[mv][aä])", r"\1\1a \1\1ä"),
        (r"([aä])\1[mv][aä](?:sti)?", r"\1t\1"),
        ("[mv][aä](?:sti)?", "a ä"),
        ("isesti", "inen"),
        ("ttom[aä]sti", "ton tön"),
        ("sti", ""),
    ),
    "fr": (
        ("(?:ée?|e|ant)", "er"),
        ("(?:ie?|issant)", "ir"),
        ("ue?", "re ir oir"),
        ("e", ""),
    ),
    "ru": (*_PARTICIPLES, ("(?<=...)о", "ый ий ой")),
}
"""The rules for words that the dictionary has as lemmas, and that are also forms of others, such as
participles."""

_OF_NOUNS: Mapping[str, _Rules] = {
    "fi": (
        ("(?:(?:ss|st|ll|lt|n)[aä]|lle|ksi|iden|[nt])", ""),
        (r"(?<=([aeiouyäö]))\1n", ""),
        ("(?<=k)oiden", "ko"),
        ("ien", "i"),
    ),
}
"""Case endings of words that are lemmas or forms of a verb in the dictionary, and also forms of a
noun. The noun is then the lemma."""

_UNINFLECTED: Mapping[str, frozenset[str]] = {
    "de": frozenset(("während",)),
    "es": frozenset(
        ("abajo", "algo", "arriba", "bajo", "como", "contra", "dentro", "encima", "entre", "este",
         "nada", "para", "sobre", "tarde")
    ),
    "fr": frozenset(("contre", "ensuite", "entre", "outre", "parce")),
}  # fmt: skip
"""Frequent words that are no forms of the words that the rules would make of them."""

_REGULAR: Mapping[str, _Rules] = {
    "en": (
        ("ies", "y"),
        ("(?:(?<=[sxz])|(?<=[cs]h))es", ""),
        ("(?<=..[^su])s", ""),
    ),
    "es": (("(?<=[^aeiouáéíóús])es", ""), ("(?<=..[^su])s", "")),
    "fa": (("ها(?:يي?)?", ""),),
    "fi": (
        (_FINNISH_NEN, "nen"),
        ("(?<=..[bcdfghjklmnpqrstvxz])i(?:t|(?:ss|st|ll|lt|n)[aä]|lle|ksi|[aä]|en)", ""),
        ("(?<=..[bcdfhjklnpqrstvxz])in", ""),
        ("(?<=..[eo])(?:(?:ss|st|ll|lt|n)[aä]|lle|ksi)", ""),
    ),
    "ru": (
        (
            "(?<=....)(?:[ыи]ми|[ое]го|[ое]му|[оеыи][йемх]|[ая]х|[ая]я|[ую]ю|[ая]ми?|[оеё]в"
            "|[аяоеуюыиьй])",
            "",
        ),
    ),
    **dict.fromkeys(("ca", "fr", "pt"), (("(?<=..[^su])s", ""),)),
}
"""The regular endings that words lose, known or not, if no other rule has made a known one."""


# Lemmas


_ELIDED = re.compile(
    "^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|all|coll|dall|dell|nell|sull|un|quest|bell)'"
    "(?=\\w)"
)
_ELIDING = frozenset(("fr", "it", "ca"))
_CAPITALISED = frozenset(("de",))
"""Languages whose nouns are capitalised, where the spelling of a noun is asked first."""

_LEAST_PART = 4
LAST_PART = frozenset(("fi",))
"""Languages of compounds, of which the last part alone is inflected and looked up. Guesses of
simplemma at unknown words are not used there, since they take that part off."""

_ARABIC = frozenset(("ar", "fa"))
"""Languages whose dictionaries are asked in the letters that all spellings of a word have."""

_MAX_SPELLINGS = 3
_AT_ONCE = 50_000
"""Letters of so many words are mapped at once."""
_DIGRAPHS = {
    "de": (("ä", "ae"), ("ö", "oe"), ("ü", "ue")),
    **dict.fromkeys(("da", "nb", "nn", "sv"), (("ä", "ae"), ("ö", "oe"), ("ø", "oe"), ("å", "aa"))),
}
"""The letters that are typed for letters with marks, besides the letters without marks."""


def languages() -> tuple[str, ...]:
    """Return the languages that have lemmas, as ISO 639 names them, sorted."""
    dictionaries.read_rules_late()
    from simplemma.strategies.dictionaries import dictionary_factory

    return tuple(sorted(dictionary_factory.SUPPORTED_LANGUAGES))


def with_other_digraphs(word: str, language: str) -> list[str]:
    """Return the other spellings of a name in lower case: ``böll`` of boell, ``boell`` of böll."""
    digraphs = _DIGRAPHS.get(language, ())
    marked = _with_each(word, ((typed, letter) for letter, typed in digraphs))
    return [other for other in (marked, _with_each(word, digraphs)) if other != word]


def _with_each(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    return reduce(lambda text, pair: text.replace(*pair), pairs, text)


class _Dictionaries:
    """The dictionaries, as simplemma asks for them."""

    def get_dictionary(self, lang: str) -> Mapping[str, str]:
        return _in_letters(lang) if lang in _ARABIC else dictionaries.lemmas(lang)


_DICTIONARIES = _Dictionaries()


class Lemmas:
    """The lemmas of the words of a language, which are in lower case."""

    def __init__(self, language: str) -> None:
        dictionaries.read_rules_late()
        from simplemma import Lemmatizer
        from simplemma.strategies import DefaultStrategy, DictionaryLookupStrategy

        self._language = language
        self._dictionary = DictionaryLookupStrategy(_DICTIONARIES)
        self._of_unknown = _expressions(_OF_UNKNOWN_WORDS.get(language, ()))
        self._of_lemmas = _expressions(_OF_LEMMAS.get(language, ()))
        self._of_nouns = _expressions(_OF_NOUNS.get(language, ()))
        self._regular = _expressions(_REGULAR.get(language, ()))
        self._uninflected = _UNINFLECTED.get(language, frozenset())
        self._has_parts = language in LAST_PART
        is_capitalised = language in _CAPITALISED  # and has compounds, which are looked up
        self._spellings = (str.capitalize, str) if is_capitalised else (str,)
        self._lemmatizer = Lemmatizer(
            lemmatization_strategy=DefaultStrategy(is_capitalised, _DICTIONARIES)
        )

    def __call__(self, word: str) -> str:
        if self._language in _ELIDING:
            word = _ELIDED.sub("", word)
        head, spelling = "", self._inflected(word)
        if spelling is None and self._has_parts:
            head, spelling = next(self._last_parts(word), ("", None))
        if spelling is None:
            word = next(_replaced(word, self._regular), word)
            spelling = self._known_spelling(word) or word
        word = self._last_lemma(spelling)
        if word not in self._uninflected:
            further = _first(_replaced(word, self._of_lemmas), self._known)
            word = self._last_lemma(further) if further else word
        return head + word

    def has_word(self, word: str) -> bool:
        """Return whether the dictionary has a word, and not as an abbreviation."""
        lemma = self._dictionary.get_lemma(word, self._language)
        return lemma is not None and not lemma.isupper()

    def of_typed(self, word: str) -> list[str]:
        """Return the lemmas of the words that are typed like this if accents are left out. A word
        with ß has the lemma of its spelling with ss, too."""
        if self._language in _ARABIC:
            return []
        words = _accented(self._language).get(word, "").split("\t")
        if "ß" in word:
            words.append(word.replace("ß", "ss"))
        return [self(other.lower()) for other in filter(None, words)]

    def _last_lemma(self, word: str) -> str:
        """Return the lemma that has no other one."""
        chain = [word]
        while True:  # operas, opera, opus
            if self._language == "en" and word[-1] == "a" and self._lemma(f"{word}s") == word:
                return word  # opera is a word of its own, and a plural of opus
            word = self._lemma(word)
            if word in chain:  # itself, or German Tag, tagen, Tag
                return min(chain[chain.index(word) :], key=lambda word: (len(word), word))
            chain.append(word)

    def _lemma(self, word: str) -> str:
        """Return the lemma of the first spelling that has another one than itself."""
        if self._has_parts:
            return self._noun_or_lemma(word)
        lemmas = (
            self._lemmatizer.lemmatize(spelt(word), self._language).lower()
            for spelt in self._spellings
        )
        return next((lemma for lemma in lemmas if lemma != word), word)

    def _noun_or_lemma(self, word: str) -> str:
        """Return the lemma in the dictionary. If this lemma is the word itself or a verb, and the
        word is a form of a noun too, return that noun."""
        lemma = (self._dictionary.get_lemma(word, self._language) or word).lower().rstrip(".")
        nouns = _replaced(word, self._of_nouns) if lemma == word or lemma[-1] in "aä" else ()
        return _first(nouns, self._noun) or lemma

    def _noun(self, word: str) -> str | None:
        """Return a word if the dictionary has it as a lemma."""
        is_lemma = len(word) > 3 and self._dictionary.exact_lemma(word, self._language) == word
        return word if is_lemma else None

    def _known(self, word: str) -> str | None:
        is_in = len(word) > 2 and self._dictionary.get_lemma(word, self._language) is not None
        return word if is_in else None

    def _known_spelling(self, word: str) -> str | None:
        """Return the spelling of a word in the dictionary, with other accents or without."""
        if (spelling := self._known(word)) or self._language in _ARABIC:
            return spelling
        plain = accents_off(word)
        if others := _accented(self._language).get(plain):
            return others.split("\t")[0]
        return self._known(plain) if plain != word else None

    def _inflected(self, word: str) -> str | None:
        """Return the spelling of a word in the dictionary, or of what a rule makes of it."""
        return self._known_spelling(word) or _first(
            _replaced(word, self._of_unknown), self._known_spelling
        )

    def _last_parts(self, word: str) -> Iterator[tuple[str, str]]:
        """Yield the first and the last part of a compound, both in the dictionary; then pairs of
        which only the last part is."""
        for is_head, least in ((self._known, _LEAST_PART), (str, _LEAST_PART + 1)):
            for at in range(3, len(word) - least + 1):
                if is_head(word[:at]) and (spelling := self._inflected(word[at:])):
                    yield word[:at], spelling


def _expressions(rules: _Rules) -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(f"{ending}$" if ending[0] == "^" else f"(?<=..){ending}$"), instead)
        for ending, instead in rules
    ]


def _replaced(word: str, rules: Sequence[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    """Yield the words that rules make of a word."""
    for ending, instead in rules:
        if match := ending.search(word):
            yield from (word[: match.start()] + match.expand(other) for other in instead.split(" "))


def _first(words: Iterable[str], known: Callable[[str], str | None]) -> str | None:
    return next(filter(None, map(known, words)), None)


@cache
def _accented(language: str) -> Mapping[str, str]:
    """Return the words of a dictionary with accents, by the words typed without them. At most
    _MAX_SPELLINGS stand with tabs between; words whose lemmas have the most words come first."""
    digraphs = _DIGRAPHS.get(language, ())

    def make() -> Mapping[str, str]:
        lemmas = dictionaries.unpacked(language)
        marked = [word for word in lemmas if not word.isascii()]
        spellings: dict[str, str] = {}
        several: dict[str, list[str]] = {}
        for at in range(0, len(marked), _AT_ONCE):
            some = marked[at : at + _AT_ONCE]
            low = "\n".join(some).lower()
            for typed in {low, _with_each(low, digraphs)}:
                plains = accents_off(typed).split("\n")
                for word, written, plain in zip(some, low.split("\n"), plains, strict=True):
                    if plain != written and spellings.setdefault(plain, word) != word:
                        several.setdefault(plain, [spellings[plain]]).append(word)
        count = Counter(map(lemmas.__getitem__, marked if several else ()))
        for plain, words in several.items():
            first = sorted(set(words), key=lambda word: (-count[lemmas[word]], word))
            spellings[plain] = "\t".join(first[:_MAX_SPELLINGS])
        return spellings

    return dictionaries.table(f"{language}-typed", make)


@cache
def _in_letters(language: str) -> Mapping[str, str]:
    """Return the words of a dictionary with their lemmas, both in the letters that are looked up.
    If several words become one, it has the lemma that most words have."""

    def make() -> Mapping[str, str]:
        lemmas = dictionaries.lemmas(language).items()
        pairs = {
            (plain_letters(word.lower()), plain_letters(lemma.lower())) for word, lemma in lemmas
        }
        count = Counter(lemma for _, lemma in pairs)
        return dict(sorted(pairs, key=lambda pair: (count[pair[1]], pair[1])))

    return dictionaries.table(f"{language}-letters", make)
