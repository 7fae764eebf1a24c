"""The endings by which words are joined that the dictionary of a language keeps apart.

A rule is an ending behind two letters or more, as a regular expression, and what may stand instead,
with blanks between. It counts only if the dictionary knows the word that it makes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Rules = tuple[tuple[str, str], ...]

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
_SEPARATED: Rules = (  # anzufangen, angefangen, eingefärbten
    (f"^({_PREFIX})(?:zu|ge)(.+en)(?:e[mnrs]?)?", r"\1\2"),
    (f"^({_PREFIX})ge(.+)t(?:e[mnrs]?)?", r"\1\2en"),
)
_ADJECTIVE = "(?:[оеыи][йем]|[ыи]х|[ыи]ми|[ое]го|[ое]му|ая|яя|ую|юю)"
_PARTICIPLES: Rules = (
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


OF_UNKNOWN_WORDS: Mapping[str, Rules] = {
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

OF_LEMMAS: Mapping[str, Rules] = {
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

OF_NOUNS: Mapping[str, Rules] = {
    "fi": (
        ("(?:(?:ss|st|ll|lt|n)[aä]|lle|ksi|iden|[nt])", ""),
        (r"(?<=([aeiouyäö]))\1n", ""),
        ("(?<=k)oiden", "ko"),
        ("ien", "i"),
    ),
}
"""The rules for words that the dictionary has as lemmas or as forms of a verb, and that are also
forms of a noun, which is the lemma then: case endings."""

UNINFLECTED: Mapping[str, frozenset[str]] = {
    "de": frozenset(("während",)),
    "es": frozenset(
        ("abajo", "algo", "arriba", "bajo", "como", "contra", "dentro", "encima", "entre", "este",
         "nada", "para", "sobre", "tarde")
    ),
    "fr": frozenset(("contre", "ensuite", "entre", "outre", "parce")),
}  # fmt: skip
"""Frequent words that are no forms of the words that the rules would make of them."""

REGULAR: Mapping[str, Rules] = {
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
