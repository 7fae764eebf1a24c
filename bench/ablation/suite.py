"""A suite: the conditions to measure and the questions to answer, read strictly from YAML.

A ``Comparison`` is declared before anything is measured. Only this is tested, and the correction
counts all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from arag_search.agent.models.choose import OFFLINE, REPLAY_PREFIX
from arag_search.errors import ArgumentError, ConfigError
from arag_search.questions.files import Question
from arag_search.system.yaml_file import numbered, read_mapping
from bench.ablation.measure import measure_of
from bench.data import drawn
from bench.rivals import RIVALS, RivalName

ALPHA = 0.05
ENVIRONMENT = "environment"
"""The name of a model in a suite that stands for the model in ARAG_MODEL, or of --model."""
FIRST = "first "
"""What stands before a number of questions that are the first ones of a file, and not drawn."""
SET = "set"

Key = Mapping[str, str]
"""The data set and the levels of a condition, by factor."""
Levels = tuple[tuple[str, str], ...]
"""Some factors with a level each: a condition (all but the data set), or a stratum."""
Level = Annotated[str, Field(min_length=1)]
Some = Annotated[tuple[Level, ...], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)] | Annotated[str, Field(pattern=rf"^{FIRST}[1-9]\d*$")] | None
"""Questions of each set: a number, drawn by a seed; the first ones of its file; or all (None)."""
Interface = Literal["logical", "no operators", "keyword", "semantic", "hybrid"]
Names = Literal["canonical", "surface", "dropped"]
OrderName = Literal["Q1 Q2 Q3", "Q1 Q3 Q2", "Q2 Q1 Q3", "Q2 Q3 Q1", "Q3 Q1 Q2", "Q3 Q2 Q1"]
"""The levels of the gold-chain agent; see bench/studies/gold_chain.md."""
Place = Annotated[str, Field(pattern=r"^[^{}]*\{set\}[^{}]*$")]
"""A path below the folder of the data, with ``{set}`` for the data set."""


class Part(BaseModel):
    """A part of a suite: unknown keys are rejected, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _named(key: str) -> BeforeValidator:
    """Return a validator that takes a bare name as an entry with no other key."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class PresetEntry(Part):
    """A preset, with other values for some of its keys in ``set``."""

    preset: str
    label: str = ""
    set: dict[str, Any] = {}

    @property
    def level(self) -> str:
        """The name of the entry in tables: its label, else its preset, of a path the file's."""
        return self.label or re.sub(r".*/|\.ya?ml$", "", self.preset)


class RivalEntry(Part):
    """A system of bench/rivals, with other values for some of its settings in ``set``."""

    rival: RivalName
    label: str = ""
    set: dict[str, Any] = {}

    @property
    def level(self) -> str:
        """The name of the entry in tables, which says whose code it is."""
        return f"{self.label or self.rival} ({RIVALS[self.rival].row})"


class Decoding(Part):
    """How a model decodes. The endpoint chooses values that are None."""

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


class Conditions(Part):
    """The data sets of an experiment and its factors, whose levels are in the fields ``FACTORS``.
    Data sets come first, so that an index is opened once."""

    FACTORS: ClassVar[Mapping[str, str]]

    sets: Some
    questions: Count = None

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The levels of every factor."""
        fields = {SET: "sets", **self.FACTORS}
        return {
            factor: tuple(of if isinstance(of, str) else of.level for of in getattr(self, field))
            for factor, field in fields.items()
        }


class AgentRuns(Conditions):
    """Presets x question sets x models x seeds, through the agent.

    ``withheld``: a scope leaves out the documents with any evidence of the questions. ``nprobe`` is
    the number of lists that searches of approximate vectors probe (default: as the vectors say).
    ``judge`` is the decoding of the model that judges. ``rivals`` are levels of the factor "preset"
    as well.
    """

    FACTORS = {"preset": "systems", "model": "models"}

    kind: Literal["agent"]
    withheld: bool = False
    presets: tuple[Annotated[PresetEntry, _named("preset")], ...] = ()
    rivals: tuple[Annotated[RivalEntry, _named("rival")], ...] = ()
    models: Annotated[tuple[Annotated[ModelEntry, _named("model")], ...], Field(min_length=1)]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (1,)
    encoder: str | None = None
    nprobe: int | None = Field(None, ge=1)
    judge: Decoding | None = None
    workers: int = Field(1, ge=1, le=256)

    @property
    def systems(self) -> tuple[PresetEntry | RivalEntry, ...]:
        """What answers: the presets of our agent, and the systems that it is compared with."""
        return (*self.presets, *self.rivals)


class RecordedRun(Part):
    """A run by its label in tables, and its files of records."""

    label: Level
    records: Place

    @property
    def level(self) -> str:
        """The name of the entry in tables."""
        return self.label


class RecordedRuns(Conditions):
    """Recorded runs over question sets, of which nothing is asked again. ``corpus`` is the file
    that was searched."""

    FACTORS = {"run": "runs"}

    kind: Literal["recorded"]
    questions_file: Place
    corpus: Place
    runs: Annotated[tuple[RecordedRun, ...], Field(min_length=1)]


class GoldChain(Conditions):
    """The gold-chain agent with its factors; see bench/gold_chain."""

    FACTORS = {"interface": "interfaces", "names": "names", "order": "orders"}

    kind: Literal["gold_chain"]
    interfaces: Annotated[tuple[Interface, ...], Field(min_length=1)]
    orders: Annotated[tuple[OrderName, ...], Field(min_length=1)]
    names: Annotated[tuple[Names, ...], Field(min_length=1)]
    encoder: str


class Comparison(Part):
    """The declared questions: pairs of levels of a factor, compared by a primary measure and by
    secondary ones. They are compared separately for every combination of levels of the factors in
    ``apart``. Without pairs, values are shown and nothing is compared."""

    factor: str
    pairs: tuple[tuple[Level, Level], ...]
    primary: str
    secondary: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contrast:
    """A declared question: does ``first`` differ from ``second`` in ``measure``? The interval of
    its answer is at ``level``."""

    measure: str
    stratum: Levels
    first: str
    second: str
    level: float


class Suite(Part):
    """The checked content of a suite file. ``measures`` are shown in addition, but not tested."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    description: str
    experiment: Annotated[AgentRuns | GoldChain | RecordedRuns, Field(discriminator="kind")]
    comparison: Comparison
    measures: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Suite:
        if problems := list(_problems(self)):
            raise ValueError("\n".join(problems))
        return self

    @property
    def shown_measures(self) -> tuple[str, ...]:
        """All measures of the report, in its order."""
        asked = self.comparison
        return tuple(dict.fromkeys((asked.primary, *asked.secondary, *self.measures)))

    @property
    def keys(self) -> list[Key]:
        """The data set and the levels of every cell."""
        factors = self.experiment.factors
        return [dict(zip(factors, levels, strict=True)) for levels in product(*factors.values())]

    @property
    def strata(self) -> list[Levels]:
        """The combinations of levels that are kept apart."""
        apart = self.comparison.apart
        levels = product(*(self.experiment.factors[name] for name in apart))
        return [tuple(zip(apart, chosen, strict=True)) for chosen in levels]

    @property
    def compared(self) -> tuple[str, ...]:
        """The levels of the compared factor."""
        return self.experiment.factors[self.comparison.factor]

    @cached_property
    def contrasts(self) -> list[Contrast]:
        """The contrasts to test: by the primary measure, then by the secondary ones. The levels of
        the intervals are such that each of the two families holds as a whole at 1 - ALPHA
        (Bonferroni)."""
        made: list[Contrast] = []
        for measures in ((self.comparison.primary,), self.comparison.secondary):
            family = list(product(measures, self.strata, self.comparison.pairs))
            level = 1 - ALPHA / max(1, len(family))
            made += [Contrast(name, stratum, *pair, level) for name, stratum, pair in family]
        return made

    def condition(self, stratum: Levels, level: str) -> Levels:
        """Return the condition with these levels; all other factors have a single level."""
        chosen = {**dict(stratum), self.comparison.factor: level}
        factors = self.experiment.factors.items()
        return condition_of({name: chosen.get(name, all[0]) for name, all in factors})


def condition_of(key: Key) -> Levels:
    """Return a key without its data set."""
    return tuple((factor, level) for factor, level in key.items() if factor != SET)


def chosen(questions: Sequence[Question], asked: int | str | None, name: str) -> list[Question]:
    """Return the questions of a set that are asked: all, the first ones, or some that are drawn."""
    if isinstance(asked, str):
        return list(questions[: int(asked.removeprefix(FIRST))])
    return drawn(questions, asked, name)


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
        return Suite.model_validate_json(
            orjson.dumps(values, default=str, option=orjson.OPT_NON_STR_KEYS)
        )
    except ValidationError as error:
        problems = list(_in_words(error))
        do = "Compare with those in bench/suites."
        raise ConfigError(numbered("suite", problems), where=where, do=do) from error


_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is no key here",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "tuple_type": "must be a list",
    "literal_error": "must be {expected}",
    "too_short": "must have {min_length} or more",
    "too_long": "must have no more than {max_length}",
    "string_too_short": "must not be empty",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "string_pattern_mismatch": "must contain {{set}}",
}
"""The words about a wrong value, by the type of the error."""
_QUESTIONS = f'must be a number from 1, "{FIRST}N", or null for all'
_TAGS = ("agent", "gold_chain", "recorded")


def _in_words(error: ValidationError) -> Iterator[str]:
    """Yield every problem of a suite as its key and what is wrong with it."""
    lines: dict[str, str] = {}
    for problem in error.errors(include_url=False):
        kind, steps, context = problem["type"], problem["loc"], problem.get("ctx", {})
        if kind == "value_error":
            yield from str(context["error"]).splitlines()
            continue
        words = _WORDS.get(kind, "must be keys with values")
        if steps[-1:] == ("name",) and kind == "string_pattern_mismatch":
            words = "must be of a-z, 0-9 and _"
        if "questions" in steps:
            words, steps = _QUESTIONS, steps[: steps.index("questions") + 1]
        if kind.startswith("union_tag"):
            words, steps = f"must be one of {', '.join(_TAGS)}", (*steps, "kind")
        steps = [of for at, of in enumerate(steps) if at != 1 or of not in _TAGS]
        key = "".join(f"[{of}]" if isinstance(of, int) else f".{of}" for of in steps)[1:]
        if not (kind == "too_short" and any(other.startswith(f"{key}[") for other in lines)):
            lines.setdefault(key, words.format(**context))
    yield from (f"{key} {words}." for key, words in lines.items())


def _problems(suite: Suite) -> Iterator[str]:
    """Yield what the comparison names that the experiment does not vary, what it leaves out, and
    what is named twice."""
    experiment, asked = suite.experiment, suite.comparison
    factors = experiment.factors
    free = [name for name in factors if name != SET]
    roles = (asked.factor, *asked.apart)
    named = {**factors, "pair": asked.pairs, "factor": roles}
    if isinstance(experiment, AgentRuns):
        named["seed"] = experiment.seeds
    for what, names in named.items():
        if len(set(names)) < len(names):
            yield f"A {what} is named twice: {', '.join(map(str, names))}."
    for name in set(roles) - set(free):
        yield f'comparison: there is no factor "{name}". Factors: {", ".join(free)}.'
    for name in free:
        if len(factors[name]) > 1 and name not in roles:
            yield f'comparison: "{name}" has several levels, and is neither compared nor apart.'
    levels = factors.get(asked.factor, ())
    for pair in asked.pairs if levels else ():
        if len(set(pair) & set(levels)) < 2:
            yield f"comparison.pairs: {' and '.join(pair)} are not two of {', '.join(levels)}."
    for name in suite.shown_measures:
        try:
            measure_of(name)
        except ArgumentError as error:
            yield f"{error.what} Allowed: {error.allowed}."
