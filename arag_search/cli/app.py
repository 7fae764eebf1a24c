"""The arag-search command: its subcommands and exit codes.

Exit codes: 0 done, 1 a failure, 2 a query with problems, 130 interrupted. Of ``search``, ``words``
and ``read``, as of grep: 0 found, 1 nothing found, 2 a failure.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from arag_search.cli.output.printing import INTERRUPTED, say
from arag_search.system.terminal import guard_terminals

# Even the parser of options is imported when it runs, so that Ctrl-C works from the start.

FAILURE = 1
QUERY_PROBLEMS = 2
CLOSED_PIPE = 128 + signal.SIGPIPE
"""The exit code if nobody reads the output any more, as of other commands in a pipe."""
_LOOKUPS = ("search", "words", "read")
"""The commands whose exit code 1 says that nothing was found, so that all failures are 2."""
_GARBAGE_AFTER = 200_000
"""New objects after which Python looks for garbage in circles."""

COMMANDS = {
    "demo": "Index a sample corpus, search it, answer from it.",
    "index": "Build an index from folders and files.",
    "search": "Search an index and print the reply that a model would see.",
    "add": "Add documents to an index.",
    "sync": "Make an index equal to its sources as they are now.",
    "delete": "Delete documents from an index, with their passages.",
    "compact": "Merge the segments that updates left behind.",
    "embed": "Make vectors of texts, for semantic search.",
    "forget": "Remove the index of a folder of files from the cache.",
    "words": "Count words of an index, or list its fields and their values.",
    "ask": "Answer a question from an index, or several in a conversation.",
    "mcp": "Serve indexes to models, over the Model Context Protocol.",
    "install": "Let a client such as an assistant or an editor search an index.",
    "read": "Print passages or a document in full, or list all documents.",
    "check": "Show how a query is understood, or what is wrong with it.",
    "info": "Describe an index and its vectors, and verify them.",
    "presets": "List the presets, or explain one with its prompt.",
    "run": "Answer a file of questions, and record every step.",
    "measure": "Compare query interfaces on a corpus of your own.",
    "score": "Score a run against gold answers, overall and by type.",
    "view": "Show a run in a browser, or one question in the terminal.",
}
"""The commands in the order of --help, with what it says of them."""

_MODULES = {
    "add": "updates",
    "sync": "updates",
    "compact": "updates",
    "delete": "updates",
    "forget": "updates",
}
_INFO_CODES = {"IndexNotFoundError": 3, "IndexDamagedError": 4, "IndexVersionError": 4}
"""The exit codes of ``info`` by which a script knows whether to build an index."""
_OPTION_WIDTH = 20
"""Characters of the column of options in help."""
SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}
"""The settings of every parser."""


def main(name: str = "arag-search", command: Callable[[], Any] | None = None) -> None:
    """Run a command line and exit the process with its exit code."""
    for stream in ("stdin", "stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the caller
            setattr(sys, stream, open(os.devnull, "r+"))  # noqa: SIM115
    guard_terminals()
    # What a start makes stays, and looking for garbage in it would take a sixth of the time.
    gc.set_threshold(_GARBAGE_AFTER)
    if os.getpid() == 1:  # in a container, where a signal without a handler is ignored
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = run(sys.argv[1:], name, command)
    if "torch" not in sys.modules:  # libraries under it list all that is left as leaks
        gc.freeze()  # the end of the process looks for garbage once more
    sys.exit(code)


def run(
    arguments: list[str], name: str = "arag-search", command: Callable[[], Any] | None = None
) -> int:
    """Run the command line, ours or another that ends in the same way, and return the exit code."""
    is_lookup = command is None and bool(arguments) and arguments[0] in _LOOKUPS
    failure = QUERY_PROBLEMS if is_lookup else FAILURE
    try:
        return _run(arguments or ["--help"], name, command or _commands, failure)
    except KeyboardInterrupt:
        say(f"{name}: interrupted.")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone
        _drop_output()
        return CLOSED_PIPE
    except OSError as error:
        say(f"{name}: {_file_error(error)}")
        return failure


def _run(arguments: list[str], name: str, command: Callable[[], Any], failure: int) -> int:
    import typer

    from arag_search.cli.options.parser import complete, in_options
    from arag_search.errors import AragError

    made = command()
    try:
        completed = complete(made, name)
        if completed is not None:
            return completed
        with made.make_context(name, arguments, obj=arguments) as context:
            outcome: object = made.invoke(context)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except typer.Exit as ended:
        sys.stdout.flush()
        return ended.exit_code
    except typer.Abort as ended:  # Ctrl-C, or the end of the input, at a question
        raise KeyboardInterrupt from ended
    except SystemExit as ended:  # of the options for shell completion
        sys.stdout.flush()
        return ended.code if isinstance(ended.code, int) else failure
    except AragError as error:
        from arag_search.query.problems import QueryError

        if isinstance(error, QueryError):
            say("\n".join([str(error), *getattr(error, "__notes__", ())]))
            return QUERY_PROBLEMS
        parameters = _command(arguments[0]).params if arguments[0] in COMMANDS else ()
        say(f"{name}: {in_options(error, [parameter.name for parameter in parameters])}")
        return _INFO_CODES.get(type(error).__name__, failure) if arguments[0] == "info" else failure
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        say(f"{name}: {_usage_error(error, name, arguments)}")
        return failure


@functools.cache
def _commands() -> Any:
    """Return the parser of all commands. It imports the command that it runs, and no other."""
    import typer
    from typer.core import TyperGroup

    class Group(TyperGroup):
        """The commands, each made when it is asked for; their list needs none of them."""

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _command(cmd_name) if cmd_name in COMMANDS else None

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl(list(COMMANDS.items()))

    app = typer.Typer(name="arag-search", cls=Group, **SETTINGS)
    version = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit.",
    )

    @app.callback()
    def options(version: bool = version) -> None:  # pyright: ignore[reportUnusedFunction]
        """Search a corpus with logical queries: Boolean operators, phrases, prefixes and fields
        over an inverted index, ranked by BM25. Or let a language model do so, and answer.

        Begin with: arag-search demo
        """

    group: Any = typer.main.get_command(app)
    group.commands = dict.fromkeys(COMMANDS)
    return group


@functools.cache
def _command(name: str) -> Any:
    import typer
    from typer.core import TyperCommand

    from arag_search.cli.options.parser import expand_paths

    class Command(TyperCommand):
        """A command whose help leaves its texts more room."""

        def format_options(self, ctx: Any, formatter: Any) -> None:
            formatter.write_dl = functools.partial(formatter.write_dl, col_max=_OPTION_WIDTH)
            super().format_options(ctx, formatter)

    module = importlib.import_module(f"arag_search.cli.{_MODULES.get(name, name)}")
    app = function = getattr(module, f"{name}_command")
    if not isinstance(app, typer.Typer):
        app = typer.Typer(add_completion=False, **SETTINGS)
        app.command(name, cls=Command)(function)
    command: Any = typer.main.get_command(app)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _no_type
    expand_paths(command)
    return command


def _no_type(ctx: Any) -> str:
    """Return no type for the help of an argument, in place of Python's."""
    return ""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        import typer

        from arag_search.system.release import commit

        of_commit = f" (commit {known})" if (known := commit()) else ""
        print(f"arag-search {version('arag-search')}{of_commit}")
        raise typer.Exit


def _file_error(error: OSError) -> str:
    if error.filename is None and _output_fails():
        _drop_output()
        return f"The output cannot be written ({error.strerror})."
    from arag_search.errors import AragError
    from arag_search.system.cache import CACHE_VARIABLE, cache_folder
    from arag_search.system.durable import full_disk_advice

    where = "" if error.filename is None else str(error.filename)
    do = full_disk_advice(error)
    cache = cache_folder()
    # of a folder that cannot be made, the error names the first one that is not there
    if where and not do and (Path(where) in cache.parents or cache in (Path(where) / "x").parents):
        do = f"Set {CACHE_VARIABLE} to a folder that can be written."
    return str(AragError(f"A file cannot be used ({error.strerror or error}).", where=where, do=do))


def _output_fails() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _usage_error(error: Any, name: str, arguments: Sequence[str]) -> str:
    from arag_search.errors import ArgumentError

    what = str(error.format_message()).replace(": Value error, ", ": ")
    if not what.endswith((".", "?")):
        what += "."
    context: Any = getattr(error, "ctx", None)
    if context is None:
        return str(ArgumentError(what, do=f"See {name} --help."))
    allowed = " ".join(context.get_usage().removeprefix("Usage: ").split())
    commands: Any = getattr(context.command, "commands", None)
    if commands:
        allowed += f"; commands: {', '.join(commands)}"
    do = f"See {context.command_path} --help."
    option = getattr(error, "option_name", "")
    is_text = not option.startswith("--") or "QUE" in allowed  # QUERY or QUESTION
    if option and is_text and not commands and not getattr(error, "possibilities", None):
        do += _after_dashes(name, arguments, option)
    return str(ArgumentError(what, allowed=allowed, do=do))


def _after_dashes(name: str, arguments: Sequence[str], option: str) -> str:
    """Return how a text that begins with a minus, and was read as an ``option``, is written. Words
    after one without blanks are taken as the rest of it."""
    kind = re.compile("-[^-]*" + re.escape(option[1]) if option[:2] != "--" else re.escape(option))
    at = next((n for n, argument in enumerate(arguments) if kind.match(argument)), None)
    if at is None:
        return ""
    end = next((n for n in range(at + 1, len(arguments)) if arguments[n][:2] == "--"), None)
    end = at + 1 if " " in arguments[at] else end or len(arguments)
    text = " ".join(arguments[at:end])
    line = shlex.join([name, *arguments[:at], *arguments[end:], "--", text])
    return f" A text that begins with a minus stands after --: {line}"


def _drop_output() -> None:
    """Discard what is still buffered, so that the end of the process does not fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
