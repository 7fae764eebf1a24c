"""Options of commands: from fields of options, groups that several commands share, options that
exclude or need each other, and shell completion."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Collection, Sequence
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import typer

from arag_search.errors import AragError, ArgumentError
from arag_search.system.options import Option, options_of

PATHS = ("INDEX", "SOURCE", "FOLDER", "QUESTIONS", "PRESET", "DIR", "FILE")
"""What --help calls the parameters that are paths, or may be."""
_NAMED = re.compile(r"[A-Za-z0-9][\w.-]*=(?=[~$%])")
_FIELD = re.compile(r"`([a-z]\w*)(?:=([^`\n]*))?`")
"""A field in a message, perhaps with a value."""


class Typed:
    """The options and arguments of a command that were typed, by their names in Python."""

    def __init__(self, context: Any) -> None:
        self._shown: dict[str, str] = {}
        for parameter in context.command.params:
            source = context.get_parameter_source(parameter.name)
            if source is not None and source.name == "COMMANDLINE":
                self._shown[parameter.name] = _shown(parameter)

    def __contains__(self, name: str) -> bool:
        return name in self._shown

    def check_one(self, *names: str) -> None:
        """Raise ArgumentError if more than one of these was typed."""
        given = [self._shown[name] for name in names if name in self]
        if len(given) > 1:
            raise ArgumentError(
                f"{' and '.join(given)} are given together.",
                allowed="one of them",
                do="Leave one out.",
            )

    def check_effect(self, needs: str, *names: str) -> None:
        """Raise ArgumentError if one of these was typed, which have an effect with something else
        alone."""
        for name in names:
            if name in self:
                shown = self._shown[name]
                raise ArgumentError(
                    f"{shown} has no effect here.",
                    allowed=f"{shown} with {needs}",
                    do="Leave it out.",
                )


def with_groups(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command for the parser, in which the fields of groups are options, in the place of
    their group. Groups are the keyword parameters whose types are NamedTuples or dataclasses of
    options. A parameter of the type Typed gets what was typed."""
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    groups = {name: kind for name, kind in hints.items() if _is_group(kind)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name])
        elif hints[name] is not Typed:
            parameters.append(parameter.replace(annotation=hints[name]))
    own = next((name for name, kind in hints.items() if kind is typer.Context), "")

    @functools.wraps(command)
    def flat(*arguments: Any, **options: Any) -> int:
        typed = Typed(options[own] if own else options.pop("context"))
        for name, kind in groups.items():
            options[name] = _made(kind, options, typed)
        options |= {name: typed for name, kind in hints.items() if kind is Typed}
        return command(*arguments, **options)

    if not own:
        parameters.append(_parameter("context", Parameter.empty, typer.Context))
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    flat.__dict__["__signature__"] = Signature(parameters)
    return flat


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and (
        hasattr(kind, "_field_defaults") or dataclasses.is_dataclass(kind)
    )


def _parameters(kind: Any) -> list[Parameter]:
    """Return a parameter for each option of a group."""
    if hasattr(kind, "_field_defaults"):
        defaults = kind._field_defaults
        hints = get_type_hints(kind, include_extras=True).items()
        return [_parameter(field, defaults[field], hint) for field, hint in hints]
    parameters: list[Parameter] = []
    for field in dataclasses.fields(kind):
        option = options_of(kind).get(field.name)
        if option is None and dataclasses.is_dataclass(field.default):
            parameters += _parameters(type(field.default))
        elif option is not None and option.help:
            parameters.append(_parameter(field.name, *_for_typer(field.name, option)))
    return parameters


def _parameter(name: str, default: Any, annotation: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _for_typer(name: str, option: Option) -> tuple[Any, Any]:
    """Return the default of an option and its annotation for typer."""
    kind, default = option.kind, option.default
    if option.read is None and get_origin(kind) is tuple:
        kind, default = list[str] | None, None
    elif option.read is not None or str in get_args(kind):
        kind, default = str | None, None if option.read else default
    flags = (f"--{name.replace('_', '-')}",) if default is False else ()
    return default, Annotated[kind, typer.Option(*flags, help=option.help, metavar=option.metavar)]


def _made(kind: Any, options: dict[str, Any], typed: Typed) -> Any:
    """Return a group with its options, which it takes from all. An option that was not typed has
    the default of its field."""
    if hasattr(kind, "_field_defaults"):
        return kind(**{field: options.pop(field) for field in kind._fields if field in options})
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        value: Any = options.pop(field.name, None)
        option = options_of(kind).get(field.name)
        if option is None:
            if dataclasses.is_dataclass(field.default):
                values[field.name] = _made(type(field.default), options, typed)
        elif field.name in typed:
            read = option.read or (tuple if isinstance(value, list) else None)
            values[field.name] = value if read is None else read(cast(Any, value))
    return kind(**values)


def as_options(text: str, names: Collection[str] = ()) -> str:
    """Return a message in which options of the command line replace fields of jobs, and ``names``.
    Other text between backticks stays."""
    if not _FIELD.search(text):
        return text
    from index_jobs.build.options import BuildOptions
    from index_jobs.embedding.options import EmbedOptions
    from index_jobs.sources.folders.selection import FileSelection
    from index_jobs.sources.lines.files import Fields
    from index_jobs.updates.options import SyncOptions

    kinds = BuildOptions, SyncOptions, FileSelection, Fields, EmbedOptions
    known = {*names, *(name for kind in kinds for name in options_of(kind))}

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name not in known:
            return match[0]
        shown = ("--no-" if value == "False" else "--") + name.replace("_", "-")
        return shown if value in (None, "True", "False") else f"{shown} {value.strip(chr(34))}"

    return _FIELD.sub(option, text)


def in_options(error: AragError, names: Collection[str]) -> str:
    """Return the text of an error as ``as_options`` does, but for the place, which may be any."""
    for part in ("what", "allowed", "do"):
        setattr(error, part, as_options(getattr(error, part), names))
    return str(error)


def _shown(parameter: Any) -> str:
    """Return what help calls an option or argument."""
    is_option = parameter.opts[-1].startswith("-")
    return parameter.opts[-1] if is_option else parameter.metavar.strip("[].")


def expand_paths(command: Any) -> None:
    """Expand the paths that a command is given, also after ``NAME=``: see ``given_path``."""
    for parameter in command.params:
        if (parameter.metavar or "").strip("[].") in PATHS:
            process = functools.partial(_process_path, parameter, parameter.process_value)
            parameter.process_value = process


def _process_path(parameter: Any, process: Callable[..., Any], context: Any, value: Any) -> Any:
    from arag_search.system.paths import given_path

    where = _shown(parameter)
    is_option = where.startswith("-")

    def given(text: Any) -> Any:
        if isinstance(text, list | tuple):
            return [*map(given, cast(Sequence[Any], text))]
        if not isinstance(text, str):  # a default
            return text
        match = None if is_option else _NAMED.match(text)
        name = match[0] if match else ""
        return name + given_path(text.removeprefix(name), where)

    return process(context, given(value))


def complete(command: Any, name: str) -> int | None:
    """Answer the request of a shell to complete a command line, on stdout, and return the exit
    code. Return None if there is no such request.

    A shell that completes a command line runs the command with an environment variable instead of
    arguments. Paths are completed by the shell itself, where nothing is suggested here.
    """
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    request = os.environ.get(variable)
    if not request:
        return None
    from typer.completion import shell_complete

    return shell_complete(command, {}, name, variable, request)


def suggest_presets(incomplete: str) -> list[str]:
    """Return the presets of this release whose names begin with a text."""
    from arag_search.tools.preset_files import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]
