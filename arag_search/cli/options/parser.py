"""Groups of options, which several commands share, options that exclude or need each other, and
shell completion."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, cast, get_type_hints

from arag_search.errors import ArgumentError

PATHS = ("INDEX", "SOURCE", "FOLDER", "QUESTIONS", "PRESET", "DIR", "FILE")
"""What --help calls the parameters that are paths, or may be."""
_NAMED = re.compile(r"[A-Za-z0-9][\w.-]*=(?=[~$%])")


def with_groups(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command for the parser, with an option for each field of its groups, which are the
    keyword parameters whose types are NamedTuples. The options are where the group is."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if _is_group(kind)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        defaults = groups[name]._field_defaults
        parameters += [
            Parameter(field, Parameter.KEYWORD_ONLY, default=defaults[field], annotation=kind)
            for field, kind in get_type_hints(groups[name], include_extras=True).items()
        ]

    @functools.wraps(command)
    def flat(*arguments: Any, **options: Any) -> int:
        for name, group in groups.items():
            given = {field: options.pop(field) for field in group._fields if field in options}
            options[name] = group(**given)
        return command(*arguments, **options)

    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    flat.__dict__["__signature__"] = Signature(parameters)
    return flat


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "_field_defaults")


def check_one_given(options: Mapping[str, object]) -> None:
    """Raise ArgumentError if more than one of the options is given, as their values say."""
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        raise ArgumentError(
            f"{' and '.join(given)} are given together.", allowed="one of them", do="Leave one out."
        )


def without_effect(option: str, needs: str) -> ArgumentError:
    """Return the error for an option that needs something else to have an effect."""
    return ArgumentError(
        f"{option} has no effect here.", allowed=f"{option} with {needs}", do="Leave it out."
    )


def expand_paths(command: Any) -> None:
    """Expand the paths that a command is given, also after ``NAME=``: see ``given_path``."""
    for parameter in command.params:
        if (parameter.metavar or "").strip("[].") in PATHS:
            process = functools.partial(_process_path, parameter, parameter.process_value)
            parameter.process_value = process


def _process_path(parameter: Any, process: Callable[..., Any], context: Any, value: Any) -> Any:
    from arag_search.system.paths import given_path

    is_option = parameter.opts[-1].startswith("-")
    where = parameter.opts[-1] if is_option else parameter.metavar

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
