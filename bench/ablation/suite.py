"""A suite: the conditions to measure and the questions to answer, read from a YAML file and
checked.

The questions (``Comparison``) are declared before anything is measured: only these are tested, and
the correction counts all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from arag_search.agent.models.choose import OFFLINE, REPLAY_PREFIX
from arag_search.errors import ArgumentError, ConfigError
from arag_search.system.yaml_file import numbered, read_mapping
from bench.ablation.measure import comparable
from bench.quality.packed import PUBLISHED

ENVIRONMENT = "environment"
"""The name of a model in a suite that stands for the model in ARAG_MODEL."""


def _level(value: object) -> object:
    """Convert the booleans that YAML reads from on and off."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


FIRST = "first "
"""What stands before a number of questions that are the first ones of a file, and not drawn."""
FirstOnes = Annotated[str, Field(pattern=rf"^{FIRST}[1-9]\d*$")]
PRESENT, WITHHELD = "present", "withheld"
EVIDENCE = "evidence"
"""The factor of the evidence of the questions: the index has it, or a scope leaves it out."""
Level = Annotated[str, BeforeValidator(_level), Field(min_length=1)]
Some = Annotated[tuple[Level, ...], Field(min_length=1)]


class Part(BaseModel):
    """A part of a suite: unknown keys are rejected, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PresetEntry(Part):
    """A preset with changes. ``label`` is its level in tables.

    ``set`` are keys of the preset. ``arguments`` are those of its tools that the model no longer
    chooses: tool -> argument -> value.
    """

    preset: str
    label: str = ""
    set: dict[str, Any] = {}
    arguments: dict[str, dict[str, Any]] = {}

    @property
    def level(self) -> str:
        """The name of the entry in tables."""
        return self.label or self.preset


class Decoding(Part):
    """How a model decodes; what is None is left to the endpoint."""

    reasoning_effort: str | None = None
    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1)


class ModelEntry(Decoding):
    """A model by the name that ``arag-search run`` takes, or "environment", with its decoding."""

    model: str = Field(min_length=1)
    label: str = ""

    @property
    def level(self) -> str:
        """The name of the entry in tables."""
        effort = f", {self.reasoning_effort} effort" if self.reasoning_effort else ""
        return self.label or f"{self.model}{effort}"

    @property
    def takes_seeds(self) -> bool:
        """Whether another seed may give another answer; rules and recorded replies do not."""
        return self.model != OFFLINE and not self.model.startswith(REPLAY_PREFIX)


def _entry(key: str) -> BeforeValidator:
    """Return a validator that takes a bare name as an entry with no other key."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class AgentRuns(Part):
    """Presets x question sets x models x seeds, through the agent.

    ``questions`` of each set are a number, drawn by a seed; or the first ones of its file, as
    "first 300"; None takes all. ``passages`` are as published, or "packed 500": several passages
    joined up to 500 tokens. ``evidence`` is present, or withheld: a scope leaves out the documents
    with any evidence of the questions that are asked, which are drawn from those whose answer must
    be read; where both are levels, the same questions are asked. ``nprobe`` is the number of lists
    that searches of approximate vectors probe, if not that of the vectors. ``judge`` is the
    decoding of the model that judges.
    """

    kind: Literal["agent"]
    sets: Some
    passages: Some = (PUBLISHED,)
    evidence: Annotated[tuple[Literal["present", "withheld"], ...], Field(min_length=1)] = (
        PRESENT,
    )
    presets: Annotated[tuple[Annotated[PresetEntry, _entry("preset")], ...], Field(min_length=1)]
    models: Annotated[tuple[Annotated[ModelEntry, _entry("model")], ...], Field(min_length=1)]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (1,)
    questions: Annotated[int, Field(ge=1)] | FirstOnes | None = None
    encoder: str | None = None
    nprobe: int | None = Field(None, ge=1)
    judge: Decoding | None = None
    workers: int = Field(1, ge=1, le=256)

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The levels of every factor."""
        return {
            "set": self.sets,
            "passages": self.passages,
            "preset": tuple(entry.level for entry in self.presets),
            "model": tuple(entry.level for entry in self.models),
            **({EVIDENCE: self.evidence} if self.withholds else {}),
        }

    @property
    def withholds(self) -> bool:
        """Whether evidence is withheld under any condition."""
        return WITHHELD in self.evidence


class RecordedRun(Part):
    """A run by its label in tables, and its files of records: a path below the folder of the data,
    with ``{set}`` for the data set. ``system`` is what a paper calls it in its figures."""

    label: str = Field(min_length=1)
    system: str = ""
    records: Annotated[str, Field(pattern=r"^[^{}]*\{set\}[^{}]*$")]


class RecordedRuns(Part):
    """Recorded runs over question sets, of which nothing is asked again. ``questions`` are the
    files of questions, a path as in ``RecordedRun``."""

    kind: Literal["recorded"]
    sets: Some
    questions: Annotated[str, Field(pattern=r"^[^{}]*\{set\}[^{}]*$")]
    runs: Annotated[tuple[RecordedRun, ...], Field(min_length=1)]

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The levels of every factor."""
        return {"set": self.sets, "run": tuple(run.label for run in self.runs)}


class GoldChain(Part):
    """The gold-chain agent with its factors; see bench/gold_chain."""

    kind: Literal["gold_chain"]
    sets: Some
    passages: Some
    interfaces: Some
    orders: Some
    names: Some
    title: Some = ("off",)
    reply: Some = ("full",)
    half: Literal["all", "development", "test"] = "all"
    encoder: str

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The levels of every factor."""
        return {
            "set": self.sets,
            "passages": self.passages,
            "title": self.title,
            "reply": self.reply,
            "interface": self.interfaces,
            "names": self.names,
            "order": self.orders,
        }


class Comparison(Part):
    """The declared questions: pairs of levels of a factor, compared by a primary measure, on which
    claims rest, and by secondary ones. Each is asked separately for every combination of levels of
    the factors in ``apart``. ``policy`` has the factors that describe how a searcher behaves, over
    all levels of which a claim has to hold, each with the level that tables and plots show."""

    factor: str
    pairs: Annotated[tuple[tuple[Level, Level], ...], Field(min_length=1)]
    primary: str
    secondary: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    policy: dict[str, Level] = {}

    @property
    def measures(self) -> tuple[str, ...]:
        """All measures that are asked about."""
        return (self.primary, *self.secondary)


class Suite(Part):
    """The checked content of a suite file. ``measures`` are shown in addition, but not tested."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    description: str
    experiment: Annotated[AgentRuns | GoldChain | RecordedRuns, Field(discriminator="kind")]
    comparison: Comparison
    measures: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Suite:
        problems = [*_factor_problems(self), *_measure_problems(self)]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def shown_measures(self) -> tuple[str, ...]:
        """All measures of the report, in its order."""
        return tuple(dict.fromkeys((*self.comparison.measures, *self.measures)))

    @property
    def fingerprint(self) -> str:
        """A fingerprint that is equal for suites with the same measurements and questions."""
        content = orjson.dumps(
            self.model_dump(mode="json", exclude={"description"}), option=orjson.OPT_SORT_KEYS
        )
        return hashlib.sha256(content).hexdigest()[:16]


def load_suite(path: Path) -> Suite:
    """Load the suite in a file. Raises ConfigError naming every key that is unknown, missing or
    wrong."""
    values = read_mapping(path, "suite", holds="keys", allowed="lines of the form key: value")
    return checked_suite(values, str(path))


def checked_suite(values: Mapping[Any, Any], where: str) -> Suite:
    """Check the values, in the form in which YAML gives them, and return the suite. Raises
    ConfigError for all problems at once."""
    try:
        # JSON knows lists alone, which strict tuples are read from.
        return Suite.model_validate_json(orjson.dumps(values, option=orjson.OPT_NON_STR_KEYS))
    except ValidationError as error:
        raise ConfigError(
            numbered("suite", _described(error)),
            where=where,
            do="Compare with those in bench/suites.",
        ) from error


def _described(error: ValidationError) -> list[str]:
    problems: list[str] = []
    for problem in error.errors(include_url=False):
        place = ".".join(str(step) for step in problem["loc"])
        if problem["type"] == "value_error":
            problems += str(cast(Any, problem)["ctx"]["error"]).splitlines()
        elif problem["type"] == "extra_forbidden":
            keys = ", ".join(_part_at(problem["loc"]).model_fields)
            problems.append(f"{place}: there is no such key. Keys: {keys}.")
        elif problem["type"] == "missing":
            problems.append(f"{place} is missing.")
        else:
            shown = str(problem["input"])
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            problems.append(f"{place}, {shown}: {problem['msg']}.")
    return problems


_PARTS: Mapping[str, type[BaseModel]] = {
    "agent": AgentRuns,
    "gold_chain": GoldChain,
    "recorded": RecordedRuns,
    "runs": RecordedRun,
    "presets": PresetEntry,
    "models": ModelEntry,
    "judge": Decoding,
    "comparison": Comparison,
}


def _part_at(place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the part that holds a key."""
    return next((_PARTS[str(step)] for step in reversed(place[:-1]) if str(step) in _PARTS), Suite)


def _factor_problems(suite: Suite) -> list[str]:
    """Return problems of the comparison: names that the experiment does not vary, and missing
    ones."""
    factors = suite.experiment.factors
    asked = suite.comparison
    problems = [
        f'experiment: factor "{name}" has a level twice: {", ".join(levels)}.'
        for name, levels in factors.items()
        if len(set(levels)) < len(levels)
    ]
    if isinstance(suite.experiment, AgentRuns):
        seeds = suite.experiment.seeds
        if len(set(seeds)) < len(seeds):
            problems.append(f"experiment.seeds: a seed is duplicated: {seeds}.")
        passages = suite.experiment.passages
        if suite.experiment.withholds and passages != (PUBLISHED,):
            problems.append(
                f"experiment.passages, {', '.join(passages)}: evidence is withheld from passages "
                f'as they are published. Allowed: "{PUBLISHED}".'
            )
    named = (asked.factor, *asked.apart, *asked.policy)
    free = [name for name in factors if name != "set"]
    unknown = [f'comparison: there is no factor "{name}"' for name in named if name not in free]
    problems += [f"{problem}. Factors: {', '.join(free)}." for problem in unknown]
    if len(set(named)) < len(named):
        problems.append(f"comparison: a factor is named twice: {', '.join(named)}.")
    problems += [
        f'comparison: factor "{name}" has several levels ({", ".join(factors[name])}) and is '
        "neither compared, nor apart, nor a policy."
        for name in free
        if len(factors[name]) > 1 and name not in named
    ]
    if unknown:
        return problems
    levels = factors[asked.factor]
    for pair in asked.pairs:
        problems += [
            f'comparison.pairs: "{level}" is not a level of {asked.factor}. '
            f"Levels: {', '.join(levels)}."
            for level in pair
            if level not in levels
        ]
        if pair[0] == pair[1]:
            problems.append(f'comparison.pairs: "{pair[0]}" is compared with itself.')
    if len({frozenset(pair) for pair in asked.pairs}) < len(asked.pairs):
        problems.append("comparison.pairs: a pair is duplicated.")
    problems += [
        f'comparison.policy: "{level}" is not a level of {name}. '
        f"Levels: {', '.join(factors[name])}."
        for name, level in asked.policy.items()
        if level not in factors[name]
    ]
    return problems


def _measure_problems(suite: Suite) -> list[str]:
    problems: list[str] = []
    for name in suite.shown_measures:
        try:
            comparable(name)
        except ArgumentError as error:
            problems.append(f"{error.what} Measures: {error.allowed}.")
    return problems
