"""Presets x question sets x models x seeds through the agent; every seed is a run folder of
``arag-search run``, and interrupted runs are resumed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cache, partial
from typing import Any

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ChatModel
from arag_search.agent.models.choose import MODEL_VARIABLE, choose_model
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.prompts import system_prompt
from arag_search.agent.record import Record
from arag_search.endpoints.calls import first_set
from arag_search.errors import AragError, ConfigError
from arag_search.evaluation.judgements import checked_judgements
from arag_search.evaluation.resolution import IndexedPassage, LocatedEvidence, Passages
from arag_search.questions.files import Question, load_questions, questions_fingerprint
from arag_search.runs.folder import COMPARED, read_records
from arag_search.runs.prices import Prices
from arag_search.runs.run import RunOptions, run
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.progress import open_progress
from arag_search.system.yaml_file import numbered
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import changed_preset, load_preset
from bench import BenchError
from bench.ablation.cells import Cell, CellRow
from bench.ablation.estimate import Estimate, estimate, estimate_judge, estimate_rival
from bench.ablation.judging.judges import Judging
from bench.ablation.measure import COSTS, measure_of
from bench.ablation.scoring import rows_of
from bench.ablation.suite import (
    ENVIRONMENT,
    AgentRuns,
    Key,
    ModelEntry,
    PresetEntry,
    RivalEntry,
    Suite,
    chosen,
)
from bench.ablation.unavailable import TakenAway, must_be_read, take_away
from bench.data import Folders, own_index
from bench.report.fingerprints import code_fingerprint, prompt_fingerprint
from bench.rivals import RIVALS
from bench.rivals.answerer import Answerer, Built, Settings, rival_of
from bench.workbench import open_kept, say

RUNS, BUILT = "runs", "built"
MAX_READ_PASSAGES = 500_000
"""In larger indexes, not all passages are read into memory to locate evidence."""

ChooseModel = Callable[[ModelEntry, int | None], ChatModel]


def named_model(entry: ModelEntry, seed: int | None) -> ChatModel:
    """Return the model of an entry. Raises ConfigError if it is not available."""
    name = None if entry.model == ENVIRONMENT else entry.model
    decoding = entry.model_dump(exclude={"model", "label"})
    return choose_model(name, **decoding, seed=seed, allow_offline=False)


def unasked_model(entry: ModelEntry, seed: int | None) -> ChatModel:
    """Return a model that needs no key, in place of a model that nothing is asked of."""
    return OfflineModel()


class AgentExperiment:
    """An Experiment. With judges, whose model stays open, what they say is measured too. ``usual``
    has the requests of a usual question of each rival, and how many passages they show."""

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
        self._rivals: dict[str, tuple[type[Answerer], Settings]] = {}
        self.usual: dict[str, tuple[int, int]] = {}
        self._built: dict[tuple[str, ...], Built] = {}
        self._models = {entry.level: entry for entry in runs.models}
        self._open = ExitStack()
        self._candidates = cache(self._load_candidates)
        self._taken_away = cache(self._take_away)
        self._index = cache(self._open_index)
        self._located = cache(self._locate)
        self._ranked = cache(self._check_judgements)
        if problems := list(dict.fromkeys(self._problems())):
            raise ConfigError(numbered("suite", problems))

    def measure(self, key: Key) -> Cell:
        """See Experiment. Raises KeyboardInterrupt if a run was interrupted, and the errors of a
        run."""
        name = key["set"]
        asked = self._ranked(name)
        rows: list[CellRow] = []
        fingerprints: Mapping[str, str] = {}
        for seed in self._seeds(key):
            records, fingerprints = self._records(key, seed)
            passages: Sequence[IndexedPassage] = ()
            if self._index(name).manifest.chunks <= MAX_READ_PASSAGES:
                located = self._located(name)
                passages = located.passages.all
            else:
                located = self._shown(name, records)
            rows += rows_of(asked, records, seed, located, self._measures, self._judging, passages)
        prompt = prompt_fingerprint(system_prompt(self._presets[key["preset"]]))
        fingerprints = {**fingerprints, "prompt": prompt, **self._judging.fingerprints}
        built = self._built.get(tuple(key.values()))
        return Cell(key, fingerprints, rows, built and built.building)

    def estimates(
        self, keys: Sequence[Key], judge: str | None, *, trajectories: bool
    ) -> Iterator[Estimate]:
        """Yield what the cells would ask of their models, and of a judge if one is named, of the
        trajectories too."""
        for key in keys:
            answers = len(self._candidates(key["set"]))
            preset = self._presets[key["preset"]]
            name = self._models[key["model"]].model
            if name == ENVIRONMENT:
                name = first_set(os.environ, (MODEL_VARIABLE,))[0] or name
            for _ in self._seeds(key):
                if key["preset"] in self._rivals:
                    yield estimate_rival(*self.usual[key["preset"]], name, answers)
                else:
                    yield estimate(preset, name, answers)
                if judge is not None:
                    yield estimate_judge(preset, judge, answers, trajectories=trajectories)

    def close(self) -> None:
        """See Experiment."""
        for built in self._built.values():
            built.close()
        self._open.close()

    # The records of a condition and a seed

    def _records(self, key: Key, seed: int) -> tuple[Mapping[str, Record], Mapping[str, str]]:
        """Ask the questions that have no record yet, and return all records by question, and what
        they depend on. Another preset, index, model or other questions have another folder, so that
        paid replies are never mixed or lost."""
        entry, preset = self._models[key["model"]], self._presets[key["preset"]]
        asked, index = self._asked(key["set"]), self._searched(key)
        with closing(self._choose(entry, seed if entry.takes_seeds else None)) as model:
            answerer = self._answerer(key, index, preset, model)
            of_agent = answerer(index, preset, model).fingerprints
            made_of = {**of_agent, "questions": questions_fingerprint(asked)}
            made_of = {name: made_of[name] for name in COMPARED if name in made_of}
            if not entry.takes_seeds:  # rules cost nothing, and change with the code
                made_of["code"] = code_fingerprint()
            if preset.needed_vectors and self._runs.nprobe is not None:
                made_of["nprobe"] = str(self._runs.nprobe)
            levels = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(key.values()))[:80]
            digest = hashlib.sha256(repr((made_of, sorted(key.items()))).encode()).hexdigest()[:8]
            folder = self._folders.work / RUNS / levels / f"{digest}-seed-{seed}"
            options = RunOptions(self._runs.workers)
            outcome = run(index, asked, preset, model, folder, options=options,
                          prices=self._prices, progress=open_progress(),
                          answerer=answerer)  # fmt: skip
        if outcome.stopped == "interrupted":
            raise KeyboardInterrupt
        return read_records(folder).by_id, made_of

    def _answerer(
        self, key: Key, index: Index, preset: Preset, model: ChatModel
    ) -> Callable[[Index, Preset, ChatModel], Agent]:
        """Return what answers under a condition: our agent, or a rival, which first builds what it
        needs for this index."""
        if key["preset"] not in self._rivals:
            return Agent
        rival, settings = self._rivals[key["preset"]]
        at = tuple(key.values())
        if at not in self._built:
            of_agent = Agent(index, preset, model).fingerprints
            made_of = [of_agent.get(name) for name in ("index", "encoder")]
            digest = hashlib.sha256(repr(made_of).encode()).hexdigest()[:8]
            folder = self._folders.work / BUILT / f"{rival.__name__}-{digest}"
            self._built[at] = rival.build(index, settings, model.name, folder)
        return partial(rival, settings=settings, built=self._built[at])

    def _seeds(self, key: Key) -> tuple[int, ...]:
        """Return the seeds that may make a difference: rules give the same answer for every
        seed."""
        seeds = self._runs.seeds
        return seeds if self._models[key["model"]].takes_seeds else seeds[:1]

    # Questions, indexes and evidence

    def _asked(self, name: str) -> Sequence[Question]:
        """Return the questions of a data set that are asked."""
        return self._taken_away(name).questions if self._runs.withheld else self._candidates(name)

    def _check_judgements(self, name: str) -> Sequence[Question]:
        """Return the questions that are asked, ready for rankings if the suite measures any."""
        asked = self._asked(name)
        if not any(measure_of(measure).kind.is_ranking for measure in self._measures):
            return asked
        asked, notes = checked_judgements(asked, self._index(name))
        for note in notes:
            say(f"{name}: {note}")
        return asked

    def _load_candidates(self, name: str) -> Sequence[Question]:
        """Return the questions that are asked, as far as their file tells. If evidence is withheld,
        the index may lack the evidence of some, which others then replace."""
        questions = load_questions(self._folders.questions(name))
        if self._runs.withheld:
            questions = [question for question in questions if must_be_read(question)]
        return chosen(questions, self._runs.questions, name)

    def _take_away(self, name: str) -> TakenAway:
        """Choose the questions of a data set whose evidence is withheld, and its documents."""
        index = self._index(name)
        if index.manifest.chunks > MAX_READ_PASSAGES:
            raise BenchError(
                "Evidence cannot be withheld from this index, because all of its passages are "
                "searched for the answers.",
                where=f"{index.location}, {index.manifest.chunks:,} passages",
                allowed=f"at most {MAX_READ_PASSAGES:,} passages",
                do="Leave out --index, so that the corpus of the data set is searched.",
            )
        questions = load_questions(self._folders.questions(name))
        choose = partial(chosen, asked=self._runs.questions, name=name)
        taken = take_away(questions, index.scan(), choose)
        count = len(taken.documents)
        say(f"{name}: {count:,} documents are withheld from {len(taken.questions):,} questions.")
        return taken

    def _searched(self, key: Key) -> Index:
        """Return the index as the agent searches it: without the evidence where it is withheld."""
        index = self._index(key["set"])
        return index.within(self._taken_away(key["set"]).filter) if self._runs.withheld else index

    def _open_index(self, name: str) -> Index:
        folders, probed = self._folders, self._runs.nprobe
        needs_vectors = any(preset.needed_vectors for preset in self._presets.values())
        encoder = self._runs.encoder if needs_vectors else None
        if folders.index is not None:
            index = open_index(folders.index, encoder=encoder, nprobe=probed, search_timeout_s=None)
        else:
            own = own_index(folders.folder(name))
            index = open_kept(folders.corpus(name), folders.kept / name, encoder, own)
        return self._open.enter_context(index)

    def _locate(self, name: str) -> LocatedEvidence:
        """Locate the evidence of the questions in the whole index."""
        return LocatedEvidence.of(self._asked(name), Passages(self._index(name).scan()))

    def _shown(self, name: str, records: Mapping[str, Record]) -> LocatedEvidence:
        """Return the passages that the records show, for an index with too many to read them all.
        Evidence that is named by title or text is then not measured."""
        ids = {id for r in records.values() for step in r.trajectory for id in step.hit_ids}
        shown = Passages(filter(None, self._index(name).read(sorted(ids))))
        return LocatedEvidence(shown, {question.id: () for question in self._asked(name)})

    # Before anything runs

    def _problems(self) -> Iterator[str]:
        """Load questions and presets, and yield everything that cannot be used."""
        runs = self._runs
        checks: list[tuple[str, Callable[[Any], object], Any]] = [
            *((f"set {name}", self._candidates, name) for name in runs.sets),
            *((f"preset {entry.level}", self._load_preset, entry) for entry in runs.presets),
            *((f"rival {entry.level}", self._load_rival, entry) for entry in runs.rivals),
            *((f"model {entry.level}", self._check_model, entry) for entry in runs.models),
        ]
        for place, check, argument in checks:
            try:
                check(argument)
            except AragError as error:
                yield f"{place}: {' '.join(str(error).splitlines())}"

    def _check_model(self, entry: ModelEntry) -> None:
        self._choose(entry, None).close()

    def _load_preset(self, entry: PresetEntry) -> None:
        """Load the preset of an entry with its changes. Raises ConfigError if it cannot be used."""
        changes = {**entry.set, **({"name": entry.label} if entry.label else {})}
        preset = load_preset(entry.preset)
        preset = changed_preset(preset, changes, "its changes") if changes else preset
        self._take(entry.level, preset)
        if preset.given == "evidence" and self._runs.withheld:
            raise ConfigError("It is given the evidence, which is withheld.")

    def _load_rival(self, entry: RivalEntry) -> None:
        """Load the system of an entry. Raises ConfigError if it cannot be used."""
        self._rivals[entry.level] = rival, settings = rival_of(entry.rival, entry.set)
        self.usual[entry.level] = RIVALS[entry.rival].usual(settings.passages)
        self._take(entry.level, rival.preset_of(entry.level))

    def _take(self, level: str, preset: Preset) -> None:
        self._presets[level] = preset
        if preset.needed_vectors and self._runs.encoder is None:
            using = ", ".join(preset.needed_vectors)
            raise ConfigError(f"{using} needs vectors, and no encoder is named.")
