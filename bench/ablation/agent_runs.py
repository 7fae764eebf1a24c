"""Presets x question sets x models x seeds through the agent; every seed is a run folder of
``arag-search run``, and interrupted runs are resumed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any, cast

import orjson
from pydantic import ValidationError

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, ToolCall
from arag_search.agent.models.choose import MODEL_VARIABLE, choose_model
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.presets import changed_preset, load_preset
from arag_search.agent.prompts import system_prompt
from arag_search.agent.record import Record
from arag_search.endpoints.calls import first_set
from arag_search.errors import AragError, ConfigError
from arag_search.evaluation.judging.factuality import means_of
from arag_search.evaluation.judging.judges import NO_JUDGES, Judges
from arag_search.evaluation.measurement import measure_questions
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.questions.files import Question, load_questions, questions_fingerprint
from arag_search.runs.folder import COMPARED, read_records
from arag_search.runs.prices import Prices
from arag_search.runs.run import RunOptions, run
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from arag_search.system.yaml_file import numbered
from arag_search.tools.base import tool_class
from arag_search.tools.preset import Preset
from bench import BenchError
from bench.ablation.cells import Cell, CellRow, Folders, Key
from bench.ablation.estimate import Estimate, estimate, estimate_judge
from bench.ablation.judging.judges import TrajectoryJudges
from bench.ablation.measure import run_measure
from bench.ablation.scoring import MEASURES, row_of, with_verdicts
from bench.ablation.suite import (
    ENVIRONMENT,
    EVIDENCE,
    FIRST,
    WITHHELD,
    AgentRuns,
    ModelEntry,
    PresetEntry,
)
from bench.ablation.unavailable import (
    GONE,
    STILL_PRESENT,
    TakenAway,
    reason_against,
    take_away,
)
from bench.quality.data_sets import drawn
from bench.quality.packed import PUBLISHED, Packing, check_packable, open_set
from bench.report.fingerprints import code_fingerprint, prompt_fingerprint
from bench.workbench import say

RUNS = "runs"
MAX_READ_PASSAGES = 500_000
"""In larger indexes, not all passages are read into memory to locate evidence."""

ChooseModel = Callable[[ModelEntry, int | None], ChatModel]


def named_model(entry: ModelEntry, seed: int | None) -> ChatModel:
    """Return the model of an entry. Raises ConfigError if it is not available."""
    return choose_model(
        None if entry.model == ENVIRONMENT else entry.model,
        reasoning_effort=entry.reasoning_effort,
        temperature=entry.temperature,
        top_p=entry.top_p,
        max_tokens=entry.max_tokens,
        seed=seed,
        allow_offline=False,
    )


def unasked_model(entry: ModelEntry, seed: int | None) -> ChatModel:
    """Return a model in place of one that nothing is asked of, for which no key is needed."""
    return OfflineModel()


class AgentExperiment:
    """An Experiment. ``limit`` takes fewer questions than the suite does, drawn the same way.
    ``measures`` are names of measures in addition to those of every row. With judges, whose
    model stays open, what they say is measured too.
    """

    def __init__(
        self,
        runs: AgentRuns,
        folders: Folders,
        *,
        limit: int | None = None,
        prices: Prices | None = None,
        choose: ChooseModel = named_model,
        measures: Sequence[str] = (),
        judges: Judges = NO_JUDGES,
        trajectory_judges: TrajectoryJudges | None = None,
        progress: Callable[[], Progress] | None = None,
    ) -> None:
        """Check all that can be checked before anything runs.

        Raises ConfigError naming every preset, model and data set that cannot be used.
        """
        self._runs = runs
        self._folders = folders
        self._prices = prices
        self._choose = choose
        self._progress = progress
        self._limit = limit
        self._indexes: dict[tuple[str, str], Index] = {}
        self._presets: dict[str, Preset] = {}
        self._entries = {entry.level: entry for entry in runs.presets}
        self._models = {entry.level: entry for entry in runs.models}
        self._questions: dict[str, Sequence[Question]] = {}
        self._taken: dict[str, TakenAway] = {}
        self._judges = judges
        self._trajectory_judges = trajectory_judges
        more = (measure for name in measures if (measure := run_measure(name)) is not None)
        self._measures = tuple(dict.fromkeys([*MEASURES, *more]))
        self._located: dict[tuple[str, str], LocatedEvidence] = {}
        self._check()

    @property
    def keys(self) -> Sequence[Key]:
        """See Experiment. Data sets come first, so that an index is opened once."""
        factors = self._runs.factors
        return [dict(zip(factors, levels, strict=True)) for levels in product(*factors.values())]

    def fingerprints(self, key: Key) -> Mapping[str, str]:
        preset = self._presets[key["preset"]]
        return {
            **self._of_run(key, self._seeds(key)[0]),
            "seeds": ", ".join(map(str, self._seeds(key))),
            "prompt": prompt_fingerprint(system_prompt(preset)),
            "code": code_fingerprint(),
            **self._of_measures(),
        }

    def measure(self, key: Key) -> Iterable[CellRow]:
        """See Experiment. Raises KeyboardInterrupt if a run was interrupted, and the errors of a
        run."""
        return [row for seed in self._seeds(key) for row in self._seed_rows(key, seed)]

    def estimates(
        self, keys: Iterable[Key], judge: str | None, *, trajectories: bool = False
    ) -> Iterator[Estimate]:
        """Yield what the cells would ask of their models, and of a judge if one is named, of the
        trajectories too."""
        for key in keys:
            runs = len(self._seeds(key))
            answers = len(self._candidates(key["set"])) * runs
            preset = self._presets[key["preset"]]
            name = self._models[key["model"]].model
            if name == ENVIRONMENT:
                name = first_set(os.environ, (MODEL_VARIABLE,))[0] or name
            yield estimate(preset, name, answers)
            if judge is not None:
                yield estimate_judge(preset, judge, answers, runs, trajectories=trajectories)

    def close(self) -> None:
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()

    def _of_measures(self) -> dict[str, str]:
        """Return the fingerprints of additional measures."""
        judges = {
            "judge": self._judges.verdicts,
            "factuality judge": self._judges.factuality,
            "judge of trajectories": self._trajectory_judges and self._trajectory_judges.intents,
        }
        more = ", ".join(map(str, self._measures[len(MEASURES) :]))
        return {
            **{
                name: f"{judge.model.fingerprint} x {judge.repeats}"
                for name, judge in judges.items()
                if judge is not None
            },
            **({"measures": more} if more else {}),
        }

    def _seeds(self, key: Key) -> tuple[int, ...]:
        """Return the seeds that may make a difference: rules give the same answer for every
        seed."""
        seeds = self._runs.seeds
        return seeds if self._models[key["model"]].takes_seeds else seeds[:1]

    def _of_run(self, key: Key, seed: int) -> dict[str, str]:
        """Return the fingerprints that a run folder keeps, including that of its index."""
        model = self._model(key, seed)
        try:
            agent = Agent(self._searched(key), self._presets[key["preset"]], model)
        finally:
            model.close()
        asked = self._asked(key)
        fingerprints = {**agent.fingerprints, "questions": questions_fingerprint(asked)}
        compared = {name: fingerprints[name] for name in COMPARED if name in fingerprints}
        probed = self._runs.nprobe if self._presets[key["preset"]].needed_vectors else None
        return compared | ({} if probed is None else {"nprobe": str(probed)})

    def _seed_rows(self, key: Key, seed: int) -> list[CellRow]:
        asked = self._asked(key)
        folder = self._folder(key, seed)
        model = self._model(key, seed)
        try:
            outcome = run(
                self._searched(key),
                asked,
                self._presets[key["preset"]],
                model,
                self._folders.work / folder,
                options=RunOptions(self._runs.workers),
                prices=self._prices,
                progress=self._progress() if self._progress is not None else None,
            )
        finally:
            model.close()
        if outcome.stopped == "interrupted":
            raise KeyboardInterrupt
        records = read_records(self._folders.work / folder).by_id
        located = self._evidence(key, records)
        values = self._values(asked, records, located)
        rows = [
            row_of(
                question,
                records.get(question.id),
                seed,
                f"{folder}#{question.id}",
                located.sets[question.id],
                values[question.id],
            )
            for question in asked
        ]
        is_whole = self._index(key).manifest.chunks <= MAX_READ_PASSAGES
        passages = located.passages.all if is_whole else ()
        if self._trajectory_judges is None:
            return rows
        return with_verdicts(rows, self._trajectory_judges, asked, records, passages)

    def _values(
        self,
        asked: Sequence[Question],
        records: Mapping[str, Record],
        located: LocatedEvidence,
    ) -> Mapping[str, Mapping[str, float | None]]:
        """Measure all questions, after the judges have judged the answers."""
        judgements = None
        factuality: Mapping[str, float | None] = {}
        if self._judges.verdicts is not None:
            judgements = self._judges.verdicts.judge_all(asked, records)
        if self._judges.factuality is not None:
            factuality = means_of(self._judges.factuality.judge_all(asked, records))
        return measure_questions(
            asked,
            records,
            self._measures,
            located=located,
            judgements=judgements,
            factuality=factuality,
        )

    def _folder(self, key: Key, seed: int) -> str:
        """Return the place of the run below the work folder. Another preset, index, model or other
        questions get another folder, so that paid replies are never mixed or lost."""
        made_of = orjson.dumps(self._of_run(key, seed), option=orjson.OPT_SORT_KEYS)
        name = Cell(key, {}).file_name.removesuffix(".jsonl")
        return f"{RUNS}/{name}/{hashlib.sha256(made_of).hexdigest()[:8]}-seed-{seed}"

    def _model(self, key: Key, seed: int) -> ChatModel:
        entry = self._models[key["model"]]
        model = self._choose(entry, seed if entry.takes_seeds else None)
        fixed = self._entries[key["preset"]].arguments
        return FixedArguments(model, fixed) if fixed else model

    def _asked(self, key: Key) -> Sequence[Question]:
        """Return the questions of a cell: if evidence is withheld under any condition, those of
        which it can be, in types of their own."""
        if not self._runs.withholds:
            return self._candidates(key["set"])
        taken = self._taken_away(key).questions
        if key[EVIDENCE] == WITHHELD:
            return taken
        return [replace(question, answerable=True) for question in taken]

    def _candidates(self, name: str) -> Sequence[Question]:
        """Return the questions that are asked, as far as their file tells: where evidence is
        withheld, the index may lack the evidence of some, which others then replace."""
        if name not in self._questions:
            everything = load_questions(self._folders.questions(name))
            if self._runs.withholds:
                everything = [
                    question for question in everything if reason_against(question) is None
                ]
            self._questions[name] = self._chosen(everything, name)
        return self._questions[name]

    def _chosen(self, questions: Sequence[Question], name: str) -> Sequence[Question]:
        return chosen(questions, self._runs.questions, self._limit, name)

    def _taken_away(self, key: Key) -> TakenAway:
        """Choose the questions of a data set whose evidence is withheld, and its documents."""
        name = key["set"]
        if name not in self._taken:
            index = self._index(key)
            if index.manifest.chunks > MAX_READ_PASSAGES:
                raise BenchError(
                    f"Evidence cannot be withheld from an index of {index.manifest.chunks:,} "
                    "passages, because all of them are searched for the answers.",
                    where=index.location,
                    allowed=f"at most {MAX_READ_PASSAGES:,} passages",
                    do="Leave out --index, so that the corpus of the data set is searched.",
                )
            questions = load_questions(self._folders.questions(name))
            taken = take_away(questions, index.scan(), lambda some: self._chosen(some, name))
            say(
                f"{name}: {len(taken.documents):,} documents are withheld, "
                f"{taken.removed:,} of {taken.passages:,} passages; of {len(taken.questions):,} "
                f"questions, {GONE} {taken.count(GONE):,}, {STILL_PRESENT} "
                f"{taken.count(STILL_PRESENT):,}."
            )
            self._taken[name] = taken
        return self._taken[name]

    def _searched(self, key: Key) -> Index:
        """Return the index as the agent searches it: without the evidence where it is withheld."""
        index = self._index(key)
        if key.get(EVIDENCE) == WITHHELD:
            return index.within(self._taken_away(key).filter)
        return index

    def _index(self, key: Key) -> Index:
        at = (key["set"], key["passages"])
        if at not in self._indexes:
            needs_vectors = any(preset.needed_vectors for preset in self._presets.values())
            encoder = self._runs.encoder if needs_vectors else None
            if self._folders.index is not None:
                self._indexes[at] = open_index(
                    self._folders.index,
                    encoder=encoder,
                    nprobe=self._runs.nprobe,
                    search_timeout_s=None,
                )
            else:
                self._indexes[at] = open_set(
                    self._folders.folder(key["set"]),
                    self._folders.corpus(key["set"]),
                    key["passages"],
                    self._folders.kept / key["set"],
                    encoder,
                )
        return self._indexes[at]

    def _evidence(self, key: Key, records: Mapping[str, Record]) -> LocatedEvidence:
        """Locate the evidence of the questions in the whole index: among the passages as published,
        and by their texts where these are packed. In an index with too many passages to read them
        all, only those that the records show are read, and evidence that is named by title or text
        is not measured."""
        at = (key["set"], key["passages"])
        if self._index(key).manifest.chunks > MAX_READ_PASSAGES:
            ids = {id for r in records.values() for step in r.trajectory for id in step.hit_ids}
            shown = filter(None, self._index(key).read(sorted(ids)))
            return LocatedEvidence(Passages(shown), {q.id: () for q in self._asked(key)})
        if at not in self._located:
            passages = Passages(self._index(key).scan())
            published: Passages | None = None
            if key["passages"] != PUBLISHED:
                as_published = self._index({**key, "passages": PUBLISHED})
                published = Passages(as_published.scan())
            asked = self._asked(key)
            self._located[at] = LocatedEvidence.of(asked, passages, published)
        return self._located[at]

    # Before anything runs

    def _check(self) -> None:
        problems: list[str] = []
        for passages in self._runs.passages:
            try:
                Packing.of(passages)
            except AragError as error:
                problems.append(_on_a_line(error))
        for name in self._runs.sets:
            try:
                self._candidates(name)
                for passages in self._runs.passages:
                    corpus = self._folders.corpus(name)
                    check_packable(name, corpus, passages, self._folders.index)
            except AragError as error:
                problems.append(_on_a_line(error))
        for entry in self._runs.presets:
            problems += self._preset_problems(entry)
        for entry in self._runs.models:
            try:
                self._choose(entry, None).close()
            except AragError as error:
                problems.append(f"model {entry.level}: {_on_a_line(error)}")
        if problems:
            raise ConfigError(numbered("suite", list(dict.fromkeys(problems))))

    def _preset_problems(self, entry: PresetEntry) -> list[str]:
        """Load the preset of an entry with its changes, and return its problems."""
        place = f"preset {entry.level}"
        changes = {**entry.set, **({"name": entry.label} if entry.label else {})}
        try:
            preset = load_preset(entry.preset)
            preset = changed_preset(preset, changes, place) if changes else preset
        except AragError as error:
            return [f"{place}: {_on_a_line(error)}"]
        self._presets[entry.level] = preset
        problems = [
            f"{place}: argument {tool}.{name}: {why}"
            for tool, arguments in entry.arguments.items()
            for name, why in _argument_problems(tool, arguments, preset).items()
        ]
        if preset.given == "evidence" and self._runs.withholds:
            problems.append(f"{place}: it is given the evidence, which is withheld.")
        if preset.needed_vectors and self._runs.encoder is None:
            using = ", ".join(preset.needed_vectors)
            problems.append(f"{place}: {using} needs vectors, and no encoder is named.")
        return problems


def chosen(
    questions: Sequence[Question], asked: int | str | None, limit: int | None, name: str
) -> Sequence[Question]:
    """Return the questions of a set that are asked: all, the first ones, or a number of drawn
    ones; with a limit, no more than that are taken of them in the same way."""
    if isinstance(asked, str):
        count = int(asked.removeprefix(FIRST))
        return questions[: min(count, limit or count)]
    return drawn(questions, limit if asked is None else min(asked, limit or asked), name)


def _argument_problems(
    tool: str, arguments: Mapping[str, object], preset: Preset
) -> dict[str, str]:
    """Return the problems of fixed arguments by argument."""
    if tool not in preset.tools:
        named = ", ".join(preset.tools) or "none"
        return dict.fromkeys(arguments, f"the preset has no such tool. Tools: {named}.")
    fields = tool_class(tool).arguments
    known = {name: value for name, value in arguments.items() if name in fields.model_fields}
    problems = {
        name: f"there is no such argument. Arguments: {', '.join(fields.model_fields)}."
        for name in arguments
        if name not in known
    }
    try:
        fields.model_validate(known)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            name = str(problem["loc"][0])
            if name in known:
                problems[name] = f"{known[name]}: {problem['msg']}."
    return problems


def _on_a_line(error: AragError) -> str:
    return " ".join(str(error).split("\n"))


# A model for which the suite chooses some arguments of the tools


Fixed = Mapping[str, Mapping[str, Any]]
"""Tool -> argument -> value."""


class FixedArguments:
    """A ChatModel that forwards requests to another one: the descriptions of the tools name the
    fixed arguments, their schemas lack them, and they are added to the calls that the model makes.

    Fixed arguments win over those that a model writes nevertheless. A call whose arguments are not
    a JSON object is forwarded unchanged.
    """

    def __init__(self, model: ChatModel, fixed: Fixed) -> None:
        self._model = model
        self._fixed = fixed
        self.name = model.name
        digest = hashlib.sha256(orjson.dumps(fixed, option=orjson.OPT_SORT_KEYS)).hexdigest()
        self.fingerprint = f"{model.fingerprint} arguments={digest[:16]}"

    def reply(self, request: ModelRequest) -> ModelReply:
        tools = tuple(self._without_fixed(schema) for schema in request.tools)
        reply = self._model.reply(replace(request, tools=tools))
        return replace(reply, tool_calls=tuple(self._completed(call) for call in reply.tool_calls))

    def close(self) -> None:
        self._model.close()

    def _without_fixed(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        fixed = self._fixed.get(schema["function"]["name"])
        if not fixed:
            return schema
        copied = deepcopy(dict(schema))
        settings = ", ".join(
            f"{name} {orjson.dumps(value).decode()}" for name, value in fixed.items()
        )
        copied["function"]["description"] += f"\nSet already, not to be given: {settings}."
        parameters = copied["function"]["parameters"]
        for name in fixed:
            parameters["properties"].pop(name, None)
        if "required" in parameters:
            parameters["required"] = [name for name in parameters["required"] if name not in fixed]
        return copied

    def _completed(self, call: ToolCall) -> ToolCall:
        fixed = self._fixed.get(call.name)
        if not fixed:
            return call
        try:
            arguments = orjson.loads(call.arguments or "{}")
        except orjson.JSONDecodeError:
            return call
        if not isinstance(arguments, dict):
            return call
        whole = {**cast(dict[str, Any], arguments), **fixed}
        return replace(call, arguments=orjson.dumps(whole).decode())
