"""The dictionaries of languages that simplemma ships, as tables that are mapped.

To unpack a dictionary takes up to seconds, and a hundred megabytes. So each becomes a table once: a
trie of marisa-trie in the cache folder. It opens in less than a millisecond, and all processes
share its memory. If the cache cannot be written, each process has tables of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

from arag_search.system.cache import cache_folder
from arag_search.system.durable import replacing

_FORMAT = 2
"""Increase it when a table of the same name holds something else."""

_RULES = "simplemma.strategies.defaultrules"


@cache
def _rules(language: str) -> Callable[[str], str | None] | None:
    """Return simplemma's function for unknown words of a language; None if it has none."""
    module = f"{_RULES}.{'is_' if language == 'is' else language}"
    return getattr(import_module(module), f"apply_{language}") if find_spec(module) else None


def read_rules_late() -> None:
    """Let simplemma be imported without its rules for all languages: to compile their expressions
    takes a twentieth of a command that searches."""
    if _RULES not in sys.modules and (spec := find_spec("simplemma")) is not None:
        rules = ModuleType(_RULES)
        folders = spec.submodule_search_locations or ()
        rules.__path__ = [f"{folder}/strategies/defaultrules" for folder in folders]
        vars(rules)["RULE_FUNCTIONS"] = SimpleNamespace(get=_rules)
        sys.modules.setdefault(_RULES, rules)


@cache
def lemmas(language: str) -> Mapping[str, str]:
    """Return the words of a language (ISO 639), each with its lemma, as simplemma has them.

    The first call on a machine takes seconds. Raises ValueError for a language without a
    dictionary.
    """
    return table(language, lambda: unpacked(language))


def unpacked(language: str) -> Mapping[str, str]:
    """Return ``lemmas(language)`` in memory, where it is read through much faster."""
    read_rules_late()
    from simplemma.strategies import DefaultDictionaryFactory

    return DefaultDictionaryFactory().get_dictionary(language)


def table(name: str, make: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    """Return a mapping that is made once on a machine, and kept in the cache by its name."""
    read_rules_late()
    from simplemma.strategies.dictionaries.trie_dictionary_factory import TrieWrapDict

    folder = cache_folder() / "words"
    path = folder / f"{name}-{version('simplemma')}-{_FORMAT}.trie"
    kind: Any = import_module("marisa_trie").BytesTrie  # it has no types
    trie = kind()
    try:
        trie.mmap(str(path))
    except (OSError, RuntimeError):  # there is none, or it is damaged
        trie = kind((word, value.encode()) for word, value in make().items())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path, shared=True) as new:
                trie.save(str(new))
        except (OSError, RuntimeError):
            pass
    return TrieWrapDict(trie)
