"""Manuals and code: parsing of pages and modules, what shows a default, and units that are cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.quality.manuals import (
    Default,
    Passages,
    defaults,
    entry_places,
    function_places,
    names_in,
)
from bench.quality.packages import AbsentError, definitions_of, entries_of, key_of, manual_in
from bench.report.estimates import counted, mean
from bench.report.rows import Row

PAGE = """
<dl class="toc"><dt>Contents</dt><dd>Not an entry.</dd></dl>
<dl class="variablelist">
<dt id="GUC-MAX-WORKERS"><span class="term"><code class="varname">max_workers</code>
 (<code class="type">integer</code>)</span></dt>
<dd><p>Workers at most. The default is
three. This parameter can only be set at server start.</p></dd>
<dt id="GUC-NAPTIME">naptime (integer)</dt>
<dt>nap_time (integer)</dt>
<dd><p>A delay of e.g.&nbsp;a minute. The default is three.</p>
<dl><dt>inner</dt><dd>Inside.</dd></dl></dd>
<dt id="GUC-WORKERS">workers (integer)</dt><dd><p>Workers now. The default is none.</p></dd>
<dt id="GUC-MODE">mode (enum)</dt><dd><p>A way. The default is fast.</p></dd>
</dl>
"""
ENTRIES = entries_of(PAGE, "runtime-config.html")
MODULE = '''"""Text."""

class Worker:
    @property
    def name(self):
        """Return the name that this worker was given when it was made by the pool of workers."""
        return self._name
'''
DEFINITIONS = list(definitions_of(MODULE, "pool.py"))


def settings() -> dict[str, Default]:
    return {default.name: default for default in defaults(ENTRIES)}


def test_an_entry_is_its_terms_with_their_text_and_all_within() -> None:
    assert [(entry.id, entry.name) for entry in ENTRIES] == [
        ("GUC-MAX-WORKERS", "max_workers"),
        ("GUC-NAPTIME", "naptime"),
        ("", "inner"),
        ("GUC-WORKERS", "workers"),
        ("GUC-MODE", "mode"),
    ]
    assert ENTRIES[0].term == "max_workers (integer)"
    assert ENTRIES[1].text == (
        "naptime (integer) nap_time (integer) A delay of e.g. a minute. The default is three."
        " inner Inside."
    )


def test_a_default_is_shown_only_below_the_term_of_its_setting() -> None:
    assert set(settings()) == {"max_workers", "naptime", "workers", "mode"}
    shown = settings()["max_workers"].is_shown
    assert shown(["**max_workers** (integer)\nWorkers at most. The default is three."])
    assert not shown(["max_workers (integer) (1 left out) naptime (integer) The default is three."])
    assert not settings()["workers"].is_shown(["max_workers (integer) The default is none."])
    assert not shown(["max_workers (integer)", "The default is three."])
    assert not shown(["max_workers (integer) Workers at most. (1 left out)"])
    assert settings()["mode"].is_shown(["(1 left out) The default is fast."])
    assert not settings()["mode"].is_shown(
        ["max_workers (integer) (1 left out) The default is fast."]
    )


def test_settings_are_counted_by_whole_names() -> None:
    assert names_in(["max_workers_per_gather, workers"], {"max_workers"}) == set()
    assert names_in(["a.b, c.", "d_e"], {"a.b", "c", "d"}) == {"a.b", "c"}


def test_a_definition_has_its_decorators_and_its_place() -> None:
    worker, name = DEFINITIONS
    assert (worker.name, worker.is_class, name.is_class) == ("Worker", True, False)
    assert name.source.startswith("    @property\n    def name(self):")
    assert key_of(MODULE)[name.starts :] == key_of(name.source)


def test_units_that_are_in_several_passages_are_cut() -> None:
    function = [definition for definition in DEFINITIONS if not definition.is_class]
    at = MODULE.index("return")
    whole, halves = Passages({"pool.py": [MODULE]}), [MODULE[:at], MODULE[at:]]
    cut = Passages({"pool.py": halves})
    assert list(whole.cuts(function_places(function))) == [False]
    assert list(cut.cuts(function_places(function))) == [True]
    assert list(Passages({"other": ["text"]}).cuts(function_places(function))) == [None]


def test_entries_are_looked_for_in_order_of_the_page() -> None:
    entries = [*entries_of("<dl><dt>a</dt><dd>Same.</dd><dt>a</dt><dd>Same.</dd></dl>", "p"),
               *entries_of("<dl><dt>b</dt><dd>Gone.</dd></dl>", "p")]  # fmt: skip
    passages = Passages({"p": ["a\n\nSame.\n\n", "a\n\nSame."]})
    assert list(passages.cuts(entry_places(entries))) == [False, False, None]
    assert list(Passages({"p": ["a\n\n", "Same. a\n\nSame."]}).cuts(entry_places(entries))) == [
        True,
        False,
        None,
    ]


def test_a_manual_that_is_absent_is_refused_with_how_to_get_it(tmp_path: Path) -> None:
    folder = tmp_path / "usr" / "share" / "doc" / "html"
    with pytest.raises(AbsentError) as caught:
        manual_in(tmp_path, "python3*-doc", "library/subprocess.html", "python3.NN-doc")
    assert "apt-get download" in str(caught.value)
    (folder / "library").mkdir(parents=True)
    (folder / "library" / "subprocess.html").touch()
    assert (
        manual_in(tmp_path, "python3*-doc", "library/subprocess.html", "python3.NN-doc") == folder
    )


def test_a_count_has_an_interval_also_at_its_bounds() -> None:
    rows = [counted("what", flags) for flags in ([True] * 60, [False] * 60, [True, False])]
    assert [(row.value, row.low, row.high) for row in rows] == [
        (60, 56.4, 60),
        (0, 0, 3.6),
        (1, 0.2, 1.8),
    ]


def test_a_mean_of_a_single_value_has_no_interval() -> None:
    assert mean("tokens", [3]) == Row("tokens", 3, "")
    assert mean("tokens", [2, 2]) == Row("tokens", 2, "", 2, 2)
