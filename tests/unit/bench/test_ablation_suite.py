"""Suites: read strictly, with all problems reported at once; those of the repository are valid."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from arag_search.errors import ArgumentError, ConfigError
from arag_search.evaluation.measures import KINDS, Kind
from bench.ablation.measure import is_ratio, measure_of
from bench.ablation.papers import MEAN, all_tables, figures_of, paper_lines
from bench.ablation.report import declaration
from bench.ablation.suite import AgentRuns, checked_suite, load_suite
from tests.support.ablations import suite_of, suite_values

SUITE_OF_BRIGHT = Path(__file__).parents[3] / "bench" / "suites" / "agenticrag_bright.yaml"
SUITES = sorted((Path(__file__).parents[3] / "bench" / "suites").glob("*.yaml"))


def problems(**changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        suite_of(**changes)
    return str(caught.value)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_a_suite_of_the_repository_is_valid_and_named_after_its_file(path: Path) -> None:
    suite = load_suite(path)
    assert suite.name == path.stem
    assert suite.comparison.pairs or len(suite.compared) == 1
    if isinstance(suite.experiment, AgentRuns) and len(suite.experiment.models) == 1:
        assert suite.experiment.models[0].model in ("environment", "offline")


def test_every_figure_of_the_papers_is_there_and_has_its_suite_and_its_line_in_the_guide() -> None:
    names = {path.stem for path in SUITES}
    tables = all_tables()
    assert (len(tables), sum(len(table["figures"]) for table in tables)) == (31, 702)
    assert all(set(table["suites"]) <= names for table in tables)
    assert {"arag_main", "logicalrag_kilt"} <= {
        name for table in tables for name in table["suites"]
    }
    guide = (SUITES[0].parents[1] / "studies" / "papers.md").read_text()
    papers = ("arag", "logicalrag", "agenticrag")
    sections = dict(zip(papers, guide.split("\n## ")[3:6], strict=True))
    for table in tables:
        lines = re.findall(r"^\| ([^|]+) \| (.+) \|$", sections[table["id"].split("_")[0]], re.M)
        places = places_of(table["table"])
        assert places, table["id"]
        for place in places:
            made = [how for named, how in lines if place in places_of(named)]
            assert made, f"{table['id']}: {place}"
            assert all(len(how.split()) > 1 for how in made)
        for suite in table["suites"]:
            assert any(f"{suite}" in how for _, how in lines), table["id"]


ORIGINS = ("prose", "README")
"""What a figure may be from but for a table or a figure."""


def places_of(text: str) -> list[tuple[str, int] | str]:
    """Return the tables and figures that a text names, and other origins of figures."""
    places: list[tuple[str, int] | str] = [origin for origin in ORIGINS if origin in text]
    for kind, numbers in re.findall(r"(Table|Figure)s? (\d+(?:(?:, | and | to )\d+)*)", text):
        given = [int(number) for number in re.findall(r"\d+", numbers)]
        several = range(given[0], given[-1] + 1) if " to " in numbers else given
        places += [(kind, number) for number in several]
    return places


def test_a_report_shows_the_figures_of_its_data_sets_with_the_size_of_their_corpora() -> None:
    text = "\n".join(paper_lines("logicalrag_interface", ("musique",)))
    assert "in share; questions: the first 400. Source: Zeng et al., 2026" in text
    assert "Measures: EM: exact match; F1:" in text
    assert "| musique | JudgeAcc | 0.501 | KILT's Wikipedia, how many is not stated |" in text
    assert "| average | " in text
    assert "hotpotqa |" not in text
    assert paper_lines("gold_chain", ("musique",)) == []


def test_means_of_table_2_of_agentic_rag_are_those_of_its_domains() -> None:
    """Check that every figure is in its column, as far as the printed means can tell."""
    (table,) = (table for table in all_tables() if table["id"] == "agenticrag_table_2")
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for system, model, data_set, _, value in table["figures"]:
        rows.setdefault((system, model), {})[data_set] = value
    assert len(rows) == 6
    for row in rows.values():
        domains = [value for name, value in row.items() if name.startswith("bright_")]
        assert fmean(domains) == pytest.approx(row[f"mean of {len(domains)} domains"], abs=0.06)
        names = {name for name in row if name.startswith("bright_")}
        assert names <= set(load_suite(SUITE_OF_BRIGHT).experiment.sets)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_figures_of_papers_are_of_measures_and_of_sets_that_there_are(path: Path) -> None:
    suite = load_suite(path)
    for table in (table for table in all_tables() if suite.name in table["suites"]):
        for *_, data_set, measure, value in figures_of(table, suite.experiment.sets):
            assert isinstance(value, float | int)
            if re.fullmatch(r"[A-Z]\w*(@\d|:\w+)?", measure):
                assert str(measure_of(measure)) == measure
            if data_set in table["passages"]:
                assert data_set in suite.experiment.sets or data_set.startswith(MEAN)


def test_all_problems_of_a_suite_are_reported_at_once() -> None:
    text = problems(
        experiment__questions=0, experiment__colour="red", experiment__names=["nicknames"],
        name="Bad Name",
    )  # fmt: skip
    assert [line for line in text.splitlines() if line[:1].isdigit()] == [
        "1. name must be of a-z, 0-9 and _.",
        '2. experiment.questions must be a number from 1, "first N", or null for all.',
        "3. experiment.names[0] must be 'canonical', 'surface' or 'dropped'.",
        "4. experiment.colour is no key here.",
    ]
    assert text.endswith("Do: Compare with those in bench/suites.")


def test_a_missing_key_and_a_wrong_kind_are_reported() -> None:
    values = suite_values()
    del values["experiment"]["encoder"]
    with pytest.raises(ConfigError, match=r"experiment\.encoder is missing\."):
        checked_suite(values, "x.yaml")
    kinds = "experiment.kind must be one of agent, gold_chain, recorded."
    assert kinds in problems(experiment__kind="agents")
    assert kinds in problems(experiment={"sets": ["small"]})


AGENT = {"kind": "agent", "sets": ["s"], "presets": ["logical_read"], "models": ["offline"]}
RECORDED = {
    "kind": "recorded", "sets": ["s"], "questions_file": "{set}/q", "corpus": "{set}/c",
    "runs": [{"label": "a", "records": "a.jsonl"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"experiment": RECORDED}, "experiment.runs[0].records must contain {set}."),
        ({"experiment": 3}, "experiment must be keys with values."),
        ({"description": None}, "description must be text."),
        ({"measures": "EM"}, "measures must be a list."),
        ({"extra": {1}}, "extra is no key here."),
        ({"comparison__pairs": [["a", "b", "c"]]},
         "comparison.pairs[0] must have no more than 2."),
        ({"comparison__pairs": [["a"]]}, "comparison.pairs[0][1] is missing."),
        ({"experiment": AGENT | {"models": []}}, "experiment.models must have 1 or more."),
        ({"experiment": AGENT | {"sets": [""]}}, "experiment.sets[0] must not be empty."),
        ({"experiment": AGENT | {"seeds": [1.5]}}, "experiment.seeds[0] must be a whole number."),
        ({"experiment": AGENT | {"workers": 300}}, "experiment.workers must be 256 or less."),
        ({"experiment": AGENT | {"withheld": "yes"}}, "experiment.withheld must be true or false."),
        ({"experiment": AGENT | {"models": [{"model": "m", "temperature": -1}]}},
         "experiment.models[0].temperature must be 0.0 or more."),
        ({"experiment": AGENT | {"models": [{"model": "m", "top_p": "x"}]}},
         "experiment.models[0].top_p must be a number."),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_problem_in_words(changes: dict[str, Any], problem: str) -> None:
    assert problems(**changes) == (
        f"The suite has 1 problem.\n1. {problem}\nWhere: trial.yaml\n"
        "Do: Compare with those in bench/suites."
    )


def test_only_factors_that_vary_can_be_compared() -> None:
    text = problems(
        comparison__factor="interfaces", comparison__apart=["order"], comparison__primary="Tokens"
    )
    assert 'comparison: there is no factor "interfaces". Factors: interface' in text
    assert 'There is no measure "Tokens". Allowed: EM, F1' in text
    text = problems(comparison__pairs=[["logical", "hybrid"], ["keyword", "keyword"]])
    assert "comparison.pairs: logical and hybrid are not two of logical, keyword." in text
    assert "comparison.pairs: keyword and keyword are not two of logical, keyword." in text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_conditions_can_be_compared_by_every_measure_of_runs(kind: Kind) -> None:
    name = f"{kind.name}@3" if kind.is_ranking else kind.name
    assert (measure_of(name).kind, str(measure_of(name))) == (kind, name)
    assert is_ratio(name) == (kind.unit in ("tokens", "seconds") and not kind.per_right)
    if kind.is_ranking:
        with pytest.raises(ArgumentError, match=f'There is no measure "{kind.name}"'):
            measure_of(kind.name)


def test_a_wrong_tool_is_no_measure_and_a_right_one_is() -> None:
    assert not is_ratio("ToolCalls:open")
    assert 'There is no tool "shut".' in problems(comparison__primary="ToolCalls:shut")


def test_every_factor_with_several_levels_needs_a_role_in_the_comparison() -> None:
    text = problems(comparison__apart=[])
    assert '"order" has several levels, and is neither compared nor apart.' in text
    text = problems(comparison__apart=["order", "order"], experiment__sets=["a", "a"])
    assert "A factor is named twice: interface, order, order." in text
    assert "A set is named twice: a, a." in text


def test_a_duplicate_seed_and_a_bare_name_for_a_list_are_rejected() -> None:
    agents = {
        "kind": "agent",
        "sets": "musique",
        "presets": ["logical_read"],
        "models": ["offline"],
    }
    text = problems(experiment=agents, comparison__factor="preset")
    assert "experiment.sets must be a list." in text
    text = problems(experiment=agents | {"sets": ["musique"], "seeds": [1, 1]})
    assert "A seed is named twice: 1, 1." in text


def test_contrasts_are_declared_for_every_stratum_and_corrected_together() -> None:
    suite = suite_of()
    first, second, *others = suite.contrasts
    assert (first.stratum, second.stratum) == ((("order", "Q1 Q2 Q3"),), (("order", "Q2 Q1 Q3"),))
    assert {contrast.measure for contrast in others} == {"FullEvidence"}
    assert all(contrast.level == pytest.approx(0.975) for contrast in suite.contrasts)
    line = "- TokensToEvidence, order Q1 Q2 Q3, intervals at 97.500%: logical against keyword"
    assert declaration(suite)[0] == line
