import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from arag_search.query.dictionaries import read_rules_late
from arag_search.query.lemmas import languages


def test_the_rules_of_each_language_are_those_of_simplemma() -> None:
    read_rules_late()
    late: Any = import_module("simplemma.strategies.defaultrules").RULE_FUNCTIONS
    folder = Path(import_module("simplemma.strategies").__path__[0]) / "defaultrules"
    name = "all_rules_of_simplemma"
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    whole: Any = importlib.util.module_from_spec(spec)
    sys.modules[name] = whole
    spec.loader.exec_module(whole)

    named = {language: late.get(language) for language in languages()}
    assert {language: rule.__name__ for language, rule in named.items() if rule} == {
        language: rule.__name__ for language, rule in whole.RULE_FUNCTIONS.items()
    }
