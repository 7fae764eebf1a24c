"""The arag-search command: its subcommands and exit codes.

Exit codes: 0 done (also without hits), 1 a failure, 2 a query with problems, 130 interrupted.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from arag_search.cli.output.printing import INTERRUPTED, say
from arag_search.system.terminal import guard_terminals

# Even the parser of options is imported when it runs, so that Ctrl-C works from the start.

FAILURE = 1
QUERY_PROBLEMS = 2

_WITH_INDEX = (
    "index",
    "embed",
    "delete",
    "compact",
    "search",
    "fields",
    "ask",
    "chat",
    "mcp",
    "read",
    "documents",
    "check",
    "info",
    "questions",
    "run",
    "score",
    "view",
    "unavailable",
)


def main(name: str = "arag-search", command: Callable[[], Any] | None = None) -> None:
    """Run a command line and exit the process with its exit code."""
    for stream in ("stdin", "stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the caller
            setattr(sys, stream, open(os.devnull, "r+"))  # noqa: SIM115
    guard_terminals()
    if os.getpid() == 1:  # in a container, where a signal without a handler is ignored
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(run(sys.argv[1:], name, command))


def run(
    arguments: list[str], name: str = "arag-search", command: Callable[[], Any] | None = None
) -> int:
    """Run the command line, ours or another that ends in the same way, and return the exit code."""
    try:
        return _run(arguments or ["--help"], name, command or _command)
    except KeyboardInterrupt:
        say(f"{name}: interrupted.")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone
        _drop_output()
        return FAILURE
    except OSError as error:
        say(f"{name}: {_file_error(error)}")
        return FAILURE


def _run(arguments: list[str], name: str, command: Callable[[], Any]) -> int:
    import typer

    from arag_search.cli.options.parser import complete
    from arag_search.errors import AragError

    made = command()
    try:
        completed = complete(made, name)
        if completed is not None:
            return completed
        with made.make_context(name, arguments) as context:
            outcome: object = made.invoke(context)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except typer.Exit as ended:
        sys.stdout.flush()
        return ended.exit_code
    except SystemExit as ended:  # of the options for shell completion
        sys.stdout.flush()
        return ended.code if isinstance(ended.code, int) else FAILURE
    except AragError as error:
        from arag_search.query.problems import QueryError

        if isinstance(error, QueryError):
            say(str(error))
            return QUERY_PROBLEMS
        say(f"{name}: {error}")
        return FAILURE
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        say(f"{name}: {_usage_error(error, name)}")
        return FAILURE


@functools.cache
def _command() -> Any:
    """Build the commands and their options from the functions that run them."""
    import typer

    from arag_search.cli.ask import ask_command
    from arag_search.cli.chat import chat_command
    from arag_search.cli.check import check_command
    from arag_search.cli.demo import demo_command
    from arag_search.cli.documents import documents_command
    from arag_search.cli.embed import embed_command
    from arag_search.cli.fields import fields_command
    from arag_search.cli.index import index_command
    from arag_search.cli.info import info_command
    from arag_search.cli.mcp import mcp_command
    from arag_search.cli.opensearch import opensearch_commands
    from arag_search.cli.options.index import add_connection_options
    from arag_search.cli.presets import presets_command
    from arag_search.cli.questions import questions_command, unavailable_command
    from arag_search.cli.read import read_command
    from arag_search.cli.run import run_command
    from arag_search.cli.score import score_command
    from arag_search.cli.search import search_command
    from arag_search.cli.updates import compact_command, delete_command
    from arag_search.cli.view import show_command, view_command

    app = typer.Typer(
        name="arag-search",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
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

    app.command("demo", short_help="Index a sample corpus, search it, answer from it.")(
        demo_command
    )
    app.command("index")(index_command)
    app.command("embed")(embed_command)
    app.command("delete")(delete_command)
    app.command("compact")(compact_command)
    app.command("search")(search_command)
    app.command("fields", short_help="List the fields of an index and their values.")(
        fields_command
    )
    app.command("ask")(ask_command)
    app.command("chat", short_help="Ask several questions, each of which may use earlier ones.")(
        chat_command
    )
    app.command("mcp")(mcp_command)
    app.command("read")(read_command)
    app.command("documents")(documents_command)
    app.command("check")(check_command)
    app.command("info")(info_command)
    app.command("presets")(presets_command)
    app.command("questions")(questions_command)
    app.command("run")(run_command)
    app.command("show")(show_command)
    app.command("score")(score_command)
    app.command("view", short_help="Make a page that shows a run in a browser.")(view_command)
    app.command(
        "unavailable", short_help="Remove evidence, so that a model has to refuse to answer."
    )(unavailable_command)
    app.add_typer(opensearch_commands(), name="opensearch")
    made: Any = typer.main.get_command(app)
    for name in _WITH_INDEX:
        add_connection_options(made.commands[name])
    return made


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        import typer

        print(f"arag-search {version('arag-search')}")
        raise typer.Exit


def _file_error(error: OSError) -> str:
    """Describe a problem of a file, or of the output, in the form of our own errors."""
    if error.filename is None and _output_fails():
        _drop_output()
        return f"The output cannot be written ({error.strerror})."
    from arag_search.errors import AragError
    from arag_search.system.durable import full_disk_advice

    return str(
        AragError(
            f"A file cannot be used ({error.strerror or error}).",
            where="" if error.filename is None else str(error.filename),
            do=full_disk_advice(error),
        )
    )


def _output_fails() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _usage_error(error: Any, name: str) -> str:
    """Describe a problem of options or arguments in the form of our own errors."""
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
    if option.startswith("-") and not option.startswith("--"):
        do += " Put -- before an argument that starts with a minus."
    return str(ArgumentError(what, allowed=allowed, do=do))


def _drop_output() -> None:
    """Discard what is still buffered, so that the end of the process does not fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
