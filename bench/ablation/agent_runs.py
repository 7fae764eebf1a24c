"""Presets x question sets x models x seeds through the agent; every seed is a run folder of
``arag-search run``, and interrupted runs are resumed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import orjson

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ChatModel
from arag_search.agent.models.choose import MODEL_VARIABLE, choose_model
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.presets import changed_preset, load_preset
from arag_search.agent.prompts import system_prompt
from arag_search.agent.record import Record
from arag_search.endpoints.calls import first_set
from arag_search.errors import AragError, ConfigError
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.questions.files import Question, load_questions, questions_fingerprint
from arag_search.runs.folder import COMPARED, read_records
from arag_search.runs.prices import Prices
from arag_search.runs.run import RunOptions, run
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.progress import open_progress
from arag_search.system.yaml_file import numbered
from arag_search.tools.preset import Preset
from bench import BenchError
from bench.ablation.cells import Cell, CellRow
from bench.ablation.estimate import Estimate, estimate, estimate_judge
from bench.ablation.folders import Folders
from bench.ablation.judging.judges import Judging
from bench.ablation.measure import COSTS
from bench.ablation.scoring import rows_of
from bench.ablation.suite import (
    ENVIRONMENT,
    EVIDENCE,
    WITHHELD,
    AgentRuns,
    Key,
    ModelEntry,
    PresetEntry,
    Suite,
    chosen,
)
from bench.ablation.unavailable import TakenAway, must_be_read, take_away
from bench.quality.packed import PUBLISHED, Packing, check_packable, open_set
from bench.report.fingerprints import prompt_fingerprint
from bench.workbench import say

RUNS = "runs"
MAX_READ_PASSAGES = 500_000
"""In larger indexes, not all passages are read into memory to locate evidence."""

ChooseModel = Callable[[ModelEntry, int | None], ChatModel]


def named_model(entry: ModelEntry, seed: int | None) -> ChatModel:
    """Return the model of an entry. Raises ConfigError if it is not available."""
    name = None if entry.model == ENVIRONMENT else entry.model
    decoding = entry.model_dump(exclude={"model", "label"})
    return choose_model(name, **decoding, seed=seed, allow_offline=False)


def unasked_model(entry: ModelEntry, seed: int | None) -> ChatModel:
    """Return a model in place of one that nothing is asked of, for which no key is needed."""
    return OfflineModel()


class AgentExperiment:
    """An Experiment. With judges, whose model stays open, what they say is measured too."""

    def __init__(
        self,
        suite: Suite,
        runs: AgentRuns,
        folders: Folders,
        prices: Prices | None,
        choose: ChooseModel,
        judging: Judging,
    ) -> None:
        """Check all that can be checked before anything runs.

        Raises ConfigError naming every preset, model and data set that cannot be used.
        """
        self._runs = runs
        self._folders = folders
        self._prices = prices
        self._choose = choose
        self._judging = judging
        self._measures = (*suite.shown_measures, *COSTS)
        self._presets: dict[str, Preset] = {}
        self._models = {entry.level: entry for entry in runs.models}
        self._questions: dict[str, Sequence[Question]] = {}
        self._indexes: dict[tuple[str, str], Index] = {}
        self._taken: dict[str, TakenAway] = {}
        self._located: dict[tuple[str, str], LocatedEvidence] = {}
        if problems := list(dict.fromkeys(self._problems())):
            raise ConfigError(numbered("suite", problems))

    def measure(self, key: Key) -> Cell:
        """See Experiment. Raises KeyboardInterrupt if a run was interrupted, and the errors of a
        run."""
        rows: list[CellRow] = []
        asked = self._asked(key)
        for seed in self._seeds(key):
            records = self._records(key, seed)
            located = self._evidence(key, records)
            is_whole = self._index(key).manifest.chunks <= MAX_READ_PASSAGES
            passages = located.passages.all if is_whole else ()
            rows += rows_of(asked, records, seed, located, self._measures, self._judging, passages)
        prompt = prompt_fingerprint(system_prompt(self._presets[key["preset"]]))
        made_of = self._of_run(key, self._seeds(key)[0])
        return Cell(key, {**made_of, "prompt": prompt, **self._judging.fingerprints}, rows)

    def estimates(
        self, keys: Sequence[Key], judge: str | None, *, trajectories: bool
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
        """See Experiment."""
        for index in self._indexes.values():
            index.close()

    # The records of a condition and a seed

    def _records(self, key: Key, seed: int) -> Mapping[str, Record]:
        """Ask the questions that have no record yet, and return all records by question. Another
        preset, index, model or other questions have another folder, so that paid replies are never
        mixed or lost."""
        made_of = orjson.dumps([self._of_run(key, seed), *key.items()], option=orjson.OPT_SORT_KEYS)
        name = f"{hashlib.sha256(made_of).hexdigest()[:8]}-seed-{seed}"
        readable = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(key.values()))[:80]
        folder = self._folders.work / RUNS / readable / name
        model = self._model(key, seed)
        try:
            outcome = run(
                self._searched(key),
                self._asked(key),
                self._presets[key["preset"]],
                model,
                folder,
                options=RunOptions(self._runs.workers),
                prices=self._prices,
                progress=open_progress(),
            )
        finally:
            model.close()
        if outcome.stopped == "interrupted":
            raise KeyboardInterrupt
        return read_records(folder).by_id

    def _of_run(self, key: Key, seed: int) -> dict[str, str]:
        """Return the fingerprints that a run folder keeps, including that of its index."""
        preset = self._presets[key["preset"]]
        model = self._model(key, seed)
        try:
            agent = Agent(self._searched(key), preset, model)
        finally:
            model.close()
        asked = questions_fingerprint(self._asked(key))
        fingerprints = {**agent.fingerprints, "questions": asked}
        compared = {name: fingerprints[name] for name in COMPARED if name in fingerprints}
        probed = self._runs.nprobe if preset.needed_vectors else None
        return compared | ({} if probed is None else {"nprobe": str(probed)})

    def _seeds(self, key: Key) -> tuple[int, ...]:
        """Return the seeds that may make a difference: rules give the same answer for every
        seed."""
        seeds = self._runs.seeds
        return seeds if self._models[key["model"]].takes_seeds else seeds[:1]

    def _model(self, key: Key, seed: int) -> ChatModel:
        entry = self._models[key["model"]]
        return self._choose(entry, seed if entry.takes_seeds else None)

    # Questions, indexes and evidence

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
            questions = load_questions(self._folders.questions(name))
            if self._runs.withholds:
                questions = [question for question in questions if must_be_read(question)]
            self._questions[name] = chosen(questions, self._runs.questions, name)
        return self._questions[name]

    def _taken_away(self, key: Key) -> TakenAway:
        """Choose the questions of a data set whose evidence is withheld, and its documents."""
        name = key["set"]
        if name not in self._taken:
            index = self._index(key)
            if index.manifest.chunks > MAX_READ_PASSAGES:
                raise BenchError(
                    "Evidence cannot be withheld from this index, because all of its passages are "
                    "searched for the answers.",
                    where=f"{index.location}, {index.manifest.chunks:,} passages",
                    allowed=f"at most {MAX_READ_PASSAGES:,} passages",
                    do="Leave out --index, so that the corpus of the data set is searched.",
                )
            taken = take_away(
                load_questions(self._folders.questions(name)),
                index.scan(),
                lambda some: chosen(some, self._runs.questions, name),
            )
            count = len(taken.documents)
            say(
                f"{name}: {count:,} documents are withheld from {len(taken.questions):,} questions."
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
        name, passages = at = (key["set"], key["passages"])
        if at not in self._indexes:
            folders, location = self._folders, self._folders.index
            needs_vectors = any(preset.needed_vectors for preset in self._presets.values())
            encoder = self._runs.encoder if needs_vectors else None
            if location is not None:
                self._indexes[at] = open_index(
                    location, encoder=encoder, nprobe=self._runs.nprobe, search_timeout_s=None
                )
            else:
                folder, corpus, kept = folders.folder(name), folders.corpus(name), folders.kept
                self._indexes[at] = open_set(folder, corpus, passages, kept / name, encoder)
        return self._indexes[at]

    def _evidence(self, key: Key, records: Mapping[str, Record]) -> LocatedEvidence:
        """Locate the evidence of the questions in the whole index: among the passages as published,
        and by their texts where these are packed. In an index with too many passages to read them
        all, only those that the records show are read, and evidence that is named by title or text
        is not measured."""
        at = (key["set"], key["passages"])
        index, asked = self._index(key), self._asked(key)
        if index.manifest.chunks > MAX_READ_PASSAGES:
            ids = {id for r in records.values() for step in r.trajectory for id in step.hit_ids}
            shown = filter(None, index.read(sorted(ids)))
            return LocatedEvidence(Passages(shown), {question.id: () for question in asked})
        if at not in self._located:
            published = None
            if key["passages"] != PUBLISHED:
                published = Passages(self._index({**key, "passages": PUBLISHED}).scan())
            self._located[at] = LocatedEvidence.of(asked, Passages(index.scan()), published)
        return self._located[at]

    # Before anything runs

    def _problems(self) -> Iterator[str]:
        """Load questions and presets, and yield everything that cannot be used."""
        checks = [(f"passages {level}", lambda level=level: Packing.of(level))
                  for level in self._runs.passages]  # fmt: skip
        checks += [(f"set {name}", lambda name=name: self._check_set(name))
                   for name in self._runs.sets]  # fmt: skip
        checks += [(f"preset {entry.level}", lambda entry=entry: self._load_preset(entry))
                   for entry in self._runs.presets]  # fmt: skip
        checks += [(f"model {entry.level}", lambda entry=entry: self._choose(entry, None).close())
                   for entry in self._runs.models]  # fmt: skip
        for place, check in checks:
            try:
                check()
            except AragError as error:
                yield f"{place}: {' '.join(str(error).split(chr(10)))}"

    def _check_set(self, name: str) -> None:
        self._candidates(name)
        for passages in self._runs.passages:
            check_packable(name, self._folders.corpus(name), passages, self._folders.index)

    def _load_preset(self, entry: PresetEntry) -> None:
        """Load the preset of an entry with its changes. Raises ConfigError if it cannot be used."""
        changes = {**entry.set, **({"name": entry.label} if entry.label else {})}
        preset = load_preset(entry.preset)
        preset = changed_preset(preset, changes, "its changes") if changes else preset
        self._presets[entry.level] = preset
        problems: list[str] = []
        if preset.given == "evidence" and self._runs.withholds:
            problems.append("it is given the evidence, which is withheld.")
        if preset.needed_vectors and self._runs.encoder is None:
            using = ", ".join(preset.needed_vectors)
            problems.append(f"{using} needs vectors, and no encoder is named.")
        if problems:
            raise ConfigError(" ".join(problems))
