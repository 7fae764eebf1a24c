"""Presets: which tools, which prompt and which bounds, read from a YAML file and checked.

A file has every key that has no default, or names with ``extends`` the preset from which it takes
the keys that it leaves out. Models and endpoints are not part of a preset.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails

from arag_search.agent.prompts import SYSTEM_PROMPTS, system_prompt
from arag_search.agent.record import Route
from arag_search.engines.base import Matching
from arag_search.errors import ConfigError
from arag_search.system.yaml_file import numbered, read_mapping
from arag_search.tools.base import (
    MAX_CALLS_A_TURN,
    MIN_RESULT_TOKENS,
    Description,
    DocumentSettings,
    Paper,
    ReplyPaper,
    allowed_text,
)
from arag_search.tools.registry import DOCUMENT_TOOLS, OTHER_NAMES, TOOLS
from arag_search.vectors.base import VectorUnit

DEFAULT_PRESET = "logical_read"
EXTENDS = "extends"
"""The key of a file that names the preset to take the other keys from; a Preset has no such key."""
REPLIES_VERSION = 3
"""The version of replies: increase it when tools answer the same call, or describe themselves,
differently."""
_BLOCK = "documents"
_ENDINGS = (".yaml", ".yml")
_MAX_LOOPS = 1_000
_MIN_BUDGET = 1_000
_MAX_GIVEN = 20
_COMPARE = f"Compare with a complete one: arag-search presets {DEFAULT_PRESET} --yaml"
_EXTEND = f'Write "{EXTENDS}: {DEFAULT_PRESET}" to take the missing keys from there.'
_ABSENT = object()


def _check_tool_name(name: str) -> str:
    name = OTHER_NAMES.get(name, name)
    if name not in TOOLS:
        raise ValueError(f"there is no tool {name!r}")
    return name


ToolName = Annotated[
    str, AfterValidator(_check_tool_name), WithJsonSchema({"type": "string", "enum": list(TOOLS)})
]


class Preset(BaseModel):
    """The checked content of a preset file: how a question is answered.

    A file may leave out a key that has a default here; a key with its default does not enter
    fingerprints.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str = Field(min_length=1, description="The name of the preset in records.")
    description: str = Field(description="What the preset is for, in a sentence.")
    tools: Annotated[tuple[ToolName, ...], Field(strict=False)] = Field(
        description="The tools that the model may call; none for an answer without a search."
    )
    prompt: str = Field(
        description="The system prompt: a name, or a file ending in .md beside the preset."
    )
    plan_first: bool = Field(description="Whether to ask for a short plan before the first search.")
    max_loops: int = Field(
        ge=1, le=_MAX_LOOPS, description="Turns with tools before an answer is forced."
    )
    token_budget: int = Field(
        ge=_MIN_BUDGET, description="Tokens of all messages before an answer is forced."
    )
    loop_guards: bool = Field(
        description="Whether a repeated call is answered with a nudge, and steps that show nothing "
        "new with a note."
    )
    max_result_tokens: int = Field(
        ge=MIN_RESULT_TOKENS, description="The maximum tokens of one tool result."
    )
    full_text: bool = Field(description="Whether searches show whole passages, not snippets.")
    operators: bool = Field(description="Whether logical_search takes AND, OR and NOT.")
    tool_description: Description = Field(
        description="What logical_search describes: its syntax and advice, or its syntax alone."
    )
    matching: Matching = Field(
        description="What keyword_search counts: whole tokens, or substrings as A-RAG's code does."
    )
    vectors: VectorUnit = Field(
        description="Which vectors hybrid_search ranks by: of passages, or of sentences."
    )
    given_passages: int = Field(
        ge=0,
        le=_MAX_GIVEN,
        description="Passages nearest to the question, by passage vectors, that are given with "
        "it; 0 for none.",
    )
    refinements: bool = Field(
        default=False,
        description="Whether logical_search takes sort, per_document, show and after, and "
        "keyword_search show.",
    )
    whole_up_to_tokens: int = Field(
        default=0,
        ge=0,
        description="Searches show passages of up to this many tokens whole; 0 for none.",
    )
    relax: bool = Field(
        default=False,
        description="Whether a logical search that finds nothing shows the passages that miss the "
        "fewest of its conditions.",
    )
    where: bool = Field(
        default=False,
        description="Whether searches by vectors take where, a logical query that passages must "
        "match.",
    )
    meaning: bool = Field(
        default=False,
        description="Whether hybrid_search takes a logical query and, as meaning, a sentence for "
        "vectors, instead of one text for both.",
    )
    reproduces: Paper | None = Field(
        default=None,
        description="The paper whose tool descriptions, arguments and query language this preset "
        "keeps.",
    )
    replies: ReplyPaper | None = Field(
        default=None,
        description="The paper whose replies searches and chunk_read give: ids and text, without "
        "counts, notes or mended queries, and only the paper's arguments; null for ours.",
    )
    answer_form: bool = Field(
        default=True,
        description="Whether the answer is asked for in lines: answer, explanation, sources.",
    )
    documents: DocumentSettings | None = Field(
        default=None,
        description="How document tools work, and the loop around them: a block of keys.",
    )
    memory_tokens: int = Field(
        default=0,
        ge=0,
        description="The maximum tokens of a memory that is carried through max_loops passages in "
        "the order of the corpus, instead of tools; 0 for none.",
    )
    recall_examples: int = Field(
        default=0,
        ge=0,
        le=_MAX_GIVEN,
        description="Passages read before that are shown again beside each passage, with "
        "memory_tokens.",
    )

    @property
    def needed_vectors(self) -> dict[str, VectorUnit]:
        """The tools and keys that need vectors, with the unit of the vectors."""
        needed: dict[str, VectorUnit] = {}
        for name in self.tools:
            unit = TOOLS[name].vectors
            if unit is not None:
                needed[name] = self.vectors if unit == "chosen" else unit
        if self.given_passages:
            needed["given_passages"] = "passage"
        searches = "search" in self.tools or self.document_settings.first_search
        if searches and self.document_settings.search_backend in ("hybrid", "semantic"):
            needed["search"] = self.vectors
        return needed

    @property
    def uses_documents(self) -> bool:
        """Whether the preset has document tools, so that answers cite references."""
        return not DOCUMENT_TOOLS.isdisjoint(self.tools)

    @property
    def cites_documents(self) -> bool:
        """Whether answers cite references, with scores."""
        settings = self.document_settings
        return self.uses_documents or settings.first_search or settings.given_evidence

    @property
    def document_settings(self) -> DocumentSettings:
        """The block ``documents``, or its defaults."""
        return self.documents or DocumentSettings()

    @property
    def manages_context(self) -> bool:
        """Whether a long conversation is summarized; the preset then needs the tool summarize."""
        settings = self.documents
        return settings is not None and settings.context_management and "summarize" in self.tools

    @property
    def calls_a_turn(self) -> int:
        """The maximum number of tool calls of one reply that are run."""
        if self.documents is None:
            return 1
        return self.documents.calls_a_turn or MAX_CALLS_A_TURN

    @property
    def system_prompt(self) -> str:
        """The first message of every question."""
        return system_prompt(
            self.prompt,
            plan_first=self.plan_first,
            tools=self.tools,
            answer_form=self.answer_form,
            max_loops=self.max_loops,
            calls_a_turn=self.calls_a_turn,
            scored=self.cites_documents,
        )

    @property
    def fingerprint(self) -> str:
        """Name and hash, which are equal for two presets with the same requests to a model. The
        hash leaves out the description, the place of the prompt, and settings of vectors where none
        are used, and includes the version of the replies."""
        settings = self.model_dump(mode="json", exclude={"description", "prompt"})
        if not self.cites_documents and not any(
            TOOLS[name].vectors == "chosen" for name in self.tools
        ):
            del settings["vectors"]
        if not self.given_passages:
            del settings["given_passages"]
        for key, field in type(self).model_fields.items():
            if not field.is_required() and getattr(self, key) == field.default:
                settings.pop(key, None)
        settings["replies"] = REPLIES_VERSION
        settings["system_prompt"] = self.system_prompt
        digest = hashlib.sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)).hexdigest()
        return f"{self.name}-{digest[:16]}"


def preset_folder() -> Path:
    """Return the folder of the presets of this release, in the wheel or in the checkout."""
    packaged = Path(__file__).parents[1] / "configs"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "configs"


def preset_names() -> list[str]:
    """Return the names of the presets of this release, sorted."""
    return sorted(path.stem for path in preset_folder().glob("*.yaml"))


def load_preset(name_or_path: str | Path) -> Preset:
    """Return a preset of this release by its name, or one of the user's by its path.

    A file with the key ``extends`` takes the keys that it leaves out from that preset: one of this
    release, or a file, whose path is relative to the file that names it. The preset is then named
    after its file, unless it has a name of its own.

    Raises ConfigError naming every key that is unknown, missing or wrong, or the files that extend
    each other in a cycle.
    """
    (path, values), *extensions = reversed(_layers(_preset_file(str(name_or_path))))
    preset = _check_values(values, path)
    for path, values in extensions:
        preset = _check_values(_with_block(preset, {"name": path.stem, **values}), path)
    return preset


def changed_preset(preset: Preset, changes: Mapping[str, object], where: str) -> Preset:
    """Return a preset with other values for some keys. ``where`` is the name of the changes in
    errors.

    Raises ConfigError naming every key that is unknown or wrong.
    """
    return _check_values(_with_block(preset, changes), Path(where))


def preset_yaml(preset: Preset) -> str:
    """Return a preset as the text of a file with every key, from which the same preset is
    loaded."""
    import yaml

    return yaml.safe_dump(
        preset.model_dump(mode="json"),
        sort_keys=False,
        default_flow_style=None,  # lists in one line
        allow_unicode=True,
        width=float("inf"),
    )


def _preset_file(given: str, beside: Path | None = None) -> Path:
    """Return the file of a preset, given as a name of this release or as a path. The path is
    relative to the folder of the file ``beside``, if there is one. Raises ConfigError for another
    name."""
    names = preset_names()
    if given in names:
        return preset_folder() / f"{given}.yaml"
    if not given.endswith(_ENDINGS):
        raise ConfigError(
            f'There is no preset "{given}".',
            where="" if beside is None else f'{beside}, key "{EXTENDS}"',
            allowed=f"{', '.join(names)}, or the path of a .yaml file",
            do="See them with: arag-search presets",
        )
    return Path(given) if beside is None else beside.parent / given


def _layers(path: Path) -> list[tuple[Path, dict[str, object]]]:
    """Return the keys of a file, then those of the file that it extends, and so on.

    Raises ConfigError for a cycle, and for a file that is not a preset or cannot be read.
    """
    layers: list[tuple[Path, dict[str, object]]] = []
    seen: dict[Path, Path] = {}
    while True:
        values = _file_values(path)
        seen[path.resolve()] = path
        extends = values.pop(EXTENDS, _ABSENT)
        layers.append((path, values))
        if extends is _ABSENT:
            return layers
        if not isinstance(extends, str) or not extends.strip():
            raise ConfigError(
                numbered("preset", [_wrong_value(EXTENDS, extends)]), where=str(path), do=_COMPARE
            )
        path = _preset_file(extends, beside=path)
        if path.resolve() in seen:
            files = [*seen.values()]
            ring = [*files[list(seen).index(path.resolve()) :], path]
            raise ConfigError(
                "The presets extend each other in a cycle.",
                where=" -> ".join(map(str, ring)),
                allowed="a chain that ends at a preset with every key",
                do=f'Take the key "{EXTENDS}" out of one of them.',
            )


def _file_values(path: Path) -> dict[str, object]:
    values = read_mapping(path, "preset", holds="keys", allowed="lines of the form key: value")
    return {str(key): value for key, value in values.items()}


def _with_block(preset: Preset, changes: Mapping[str, object]) -> dict[str, object]:
    """Return the keys of a preset with changes; within a block, only the given keys change."""
    values: dict[str, object] = {**preset.model_dump(), **changes}
    block = changes.get(_BLOCK)
    if preset.documents is not None and isinstance(block, Mapping):
        values[_BLOCK] = {**preset.documents.model_dump(), **cast(Mapping[str, object], block)}
    return values


def _check_values(values: Mapping[str, object], path: Path) -> Preset:
    """Return the preset in the values. Raises ConfigError for all problems at once: unknown keys,
    then wrong values, then missing keys."""
    problems = [_unknown_key(key, values[key]) for key in values if key not in Preset.model_fields]
    problems += _unknown_in_block(values.get("documents"))
    given = {key: value for key, value in values.items() if key in Preset.model_fields}
    prompt = given.get("prompt")
    if isinstance(prompt, str):
        beside = path.absolute().parent / prompt
        if prompt.endswith(".md") and beside.is_file():
            _check_prompt(beside, path)
            given["prompt"] = str(beside)
        elif prompt not in SYSTEM_PROMPTS:
            problems.append(_wrong_value("prompt", prompt))
    missing: list[str] = []
    try:
        preset = Preset.model_validate(given)
    except ValidationError as error:
        problems += _wrong_values(error)
        missing = [str(problem["loc"][0]) for problem in error.errors() if _is_missing(problem)]
    else:
        if len(set(preset.tools)) < len(preset.tools):
            problems.append(_wrong_value("tools", list(preset.tools)))
        if preset.tools and preset.memory_tokens:
            problems.append(
                f'key "memory_tokens", {preset.memory_tokens}, beside tools. Allowed: tools: [], '
                "or memory_tokens: 0."
            )
        if not problems:
            return preset
    if missing:
        problems.append(_missing_keys(missing))
    raise ConfigError(
        numbered("preset", problems), where=str(path), do=_EXTEND if missing else _COMPARE
    )


def _check_prompt(file: Path, preset: Path) -> None:
    """Raise ConfigError for a prompt that is not readable text."""
    try:
        is_empty = not file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"The prompt cannot be read ({why}).", where=f"{file}, named in {preset}"
        ) from error
    if is_empty:
        raise ConfigError("The prompt is empty.", where=f"{file}, named in {preset}")


def _wrong_values(error: ValidationError) -> list[str]:
    """Return one problem per key, in the order of the keys; missing keys are left out."""
    problems: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        inner = str(detail["loc"][1]) if detail["loc"][0] == _BLOCK and detail["loc"][1:] else ""
        key = (
            f"{_BLOCK}.{inner}" if inner in DocumentSettings.model_fields else str(detail["loc"][0])
        )
        if not _is_missing(detail) and detail["type"] != "extra_forbidden":
            problems.setdefault(key, _wrong_value(key, cast(object, detail["input"])))
    return list(problems.values())


def _unknown_in_block(block: object) -> list[str]:
    """Return a problem for each unknown key in the block ``documents``."""
    if not isinstance(block, Mapping):
        return []
    known = DocumentSettings.model_fields
    return [
        f'key "{_BLOCK}.{key}", {_preview(value)}: there is no such key. Keys: {", ".join(known)}.'
        for key, value in cast(Mapping[object, object], block).items()
        if key not in known
    ]


def _is_missing(detail: ErrorDetails) -> bool:
    return detail["type"] == "missing"


def _missing_keys(keys: list[str]) -> str:
    """Return one problem for all keys that a preset lacks."""
    if len(keys) == 1:
        return f'key "{keys[0]}" is missing. Allowed: {allowed_values(keys[0])}.'
    *others, last = (f'"{key}"' for key in keys)
    return f"keys {', '.join(others)} and {last} are missing."


def _unknown_key(key: str, value: object) -> str:
    keys = [*Preset.model_fields, EXTENDS]
    nearest = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    hint = f'Nearest: "{nearest[0]}".' if nearest else f"Keys: {', '.join(keys)}."
    return f'key "{key}", {_preview(value)}: there is no such key. {hint}'


def _wrong_value(key: str, value: object) -> str:
    return f'key "{key}", {_preview(value)}. Allowed: {allowed_values(key)}.'


def _preview(value: object) -> str:
    try:
        text = orjson.dumps(value, default=str).decode("utf-8")
    except TypeError:  # YAML has more than JSON: keys that are not text, cycles
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def allowed_values(key: str) -> str:
    """Return what a key allows, in words."""
    if key == EXTENDS:
        return "the name of a preset, or the path of a .yaml file"
    if key == "prompt":
        return f"{', '.join(SYSTEM_PROMPTS)}, or the name of an .md file beside the preset"
    if key == _BLOCK:
        return f"a block of keys, any of {', '.join(DocumentSettings.model_fields)}; or null"
    block, _, inner = key.rpartition(".")
    kind = DocumentSettings if block else Preset
    schema: dict[str, Any] = kind.model_json_schema()["properties"][inner]
    if schema.get("type") == "array":
        return f"a list of any of {', '.join(schema['items']['enum'])}, each once"
    return f"{allowed_text(schema)}{' that is not empty' if schema.get('minLength') else ''}"


# The switcher: simple questions get one search, complex ones the loop (AgenticRAG, section 5.5)
#
# The paper specifies no algorithm and gives no figures; both of our switchers are proposals.


MAX_SIMPLE_WORDS = 40
_COMPARISON = re.compile(
    r"\b(?:both|compare[ds]?|comparison|differences?|versus|vs|rather than|same|than|more|less|"
    r"fewer|older|younger|earlier|later|first|last|most|least|largest|smallest|highest|lowest|"
    r"longest|shortest|best|worst|average|total|trend|change[ds]?)\b",
    re.IGNORECASE,
)
_JOINED = re.compile(
    r"\b(?:and|or|then|also)\s+(?:who|what|when|where|which|why|how|was|were|is|are|did|does|do)\b",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"\b(?:between|from)\s+\D{0,20}\d{4}\b.{0,20}\b\d{4}\b|\b\d{4}\s*(?:-|–|to|until)\s*\d{4}\b",
    re.IGNORECASE,
)
_NAME = r"(?:[A-Z][\w'’.-]*(?:\s+(?:of|the|de|von|van|la)\s+|\s+)?)+"
_RELATED = re.compile(
    rf"(?<=\s){_NAME}\s*(?:,\s*)?(?:and|or|of|with|by|in|'s|’s)\s+(?:the\s+)?{_NAME}"
)
_RELATION = re.compile(
    r"\b(?:of|whose|by)\s+the\s+\w+\s+(?:of|who|that|which|whose)\b|\b(?:who|that|which)\s+\w+ed\b",
    re.IGNORECASE,
)
_ROUTE = re.compile(r"route\W*(simple|complex)\W*(.*)", re.IGNORECASE)
_MAX_WHY = 200


def route_by_rules(question: str) -> Route:
    """Return the route of a question, judged by its wording. O(its length)."""
    words = len(question.split())
    reasons = {
        "several question marks": question.count("?") > 1,
        "questions joined by and": _JOINED.search(question) is not None,
        "a comparison": _COMPARISON.search(question) is not None,
        "names in a relation": _RELATED.search(question) is not None,
        "one fact leads to another": _RELATION.search(question) is not None,
        "a range of dates": _RANGE.search(question) is not None,
        f"more than {MAX_SIMPLE_WORDS} words": words > MAX_SIMPLE_WORDS,
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    return Route("complex", why) if why else Route("simple", "one short question")


def read_route(reply: str) -> Route:
    """Return the route that a model names; a reply without one is complex, to be safe."""
    named = _ROUTE.search(reply)
    if named is None:
        return Route("complex", "the model named no route")
    why = " ".join(named[2].split())[:_MAX_WHY] or "as the model says"
    return Route("simple" if named[1].lower() == "simple" else "complex", why)
