"""As the first process of a container, a command has a handler for SIGTERM."""

import signal
import sys

import pytest

from arag_search.cli import app


@pytest.mark.parametrize(("pid", "is_handled"), [(1, True), (4711, False)])
def test_the_first_process_of_a_container_ends_at_sigterm_as_at_ctrl_c(
    pid: int, is_handled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("os.getpid", lambda: pid)
    monkeypatch.setattr(sys, "argv", ["arag-search", "--help"])
    try:
        with pytest.raises(SystemExit):
            app.main()
        handler = signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (handler is signal.default_int_handler) == is_handled
