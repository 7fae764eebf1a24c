"""Text written for a terminal: codes are left out, struck-over signs are in their place."""

import pytest

from index_jobs.sources.terminal_text import as_printed

ESC = "\x1b"


@pytest.mark.parametrize(
    ("written", "printed", "codes"),
    [
        # Codes of colours, in all their forms
        (f"{ESC}[31mERROR{ESC}[0m disk full", "ERROR disk full", 2),
        (f"{ESC}[38;2;255;0;0mtrue{ESC}[38:5:9mcolour{ESC}[m", "truecolour", 3),
        ("\x9b1mbold\x9b0m", "bold", 2),
        (f"{ESC}(B{ESC}[mplain\x0f", "plain", 3),
        # Other codes
        (f"{ESC}[?25l{ESC}[?2004h$ ls", "$ ls", 2),
        (f"{ESC}]0;title of the window\x07$ ls", "$ ls", 1),
        (f"{ESC}]8;;https://a.b/(c!){ESC}\\link{ESC}]8;;{ESC}\\ end", "link end", 2),
        (f"{ESC}P1$r0m{ESC}\\x \x9d0;y\x9cz", "x z", 2),
        (f"{ESC}7saved{ESC}8{ESC}c", "saved", 3),
        (f"[  OK  ]{ESC}[10CStarted", "[  OK  ] Started", 1),
        (f"{ESC}]8;;without an end", "8;;without an end", 1),
        # As JSON escapes them, in JSON
        ('{"msg": "\\u001b[31mERROR\\u001b[0m: no"}', '{"msg": "ERROR: no"}', 2),
        ('  "msg": "\\u001B[1mold\\u009b22m",', '  "msg": "old",', 2),
        ('12:00 INFO {"log": "\\\\u001b[36mup\\\\u001b[0m"}', '12:00 INFO {"log": "up"}', 2),
        # Without their first sign, where a line has several
        ("[31mERROR[0m failed", "ERROR failed", 2),
        ("^[[00;32mDEBUG ^[[00mlock", "DEBUG lock", 2),
        ("#033[36mPuppet#033[0m agent", "Puppet agent", 2),
        ("\u203a31mERR\u203a0m and \u203a32mOK\u203a0m", "ERR and OK", 4),
        ("\u241b[1mbold\u241b[22m", "bold", 2),
        # Struck over
        ("N\bNA\bAM\bME\bE", "NAME", 0),
        ("_\bf_\bi_\bl_\be f\b_o\b_r\b_", "file for", 0),
        ("+\b+\bo\bo item", "o item", 0),
        ("helo\b \blo 10%\b\b\b20%", "hello 20%", 0),
        ("漢\b\b漢字\b\b字 e\u0301\be\u0301", "漢字 e\u0301", 0),
    ],
)  # fmt: skip
def test_text_is_what_a_terminal_shows(written: str, printed: str, codes: int) -> None:
    assert as_printed(f"above\n{written}\nbelow") == (f"above\n{printed}\nbelow", codes)


@pytest.mark.parametrize(
    "text",
    [
        "[0m at the end of what is coloured",
        "depth [2m] to [3m], [0m]",
        "[my-index] and [0model] and [10mm]",
        "echo -e '\\e[31mRed\\e[0m', printf '\\033[1mx\\033[0m', \"\\x1b[1m\" + '\\33[0m'",
        'console.log("\\u001b[31mHi\\u001b[0m")',
        "‹a›0m is far",
    ],
)
def test_what_only_looks_like_a_code_stays(text: str) -> None:
    assert as_printed(text) == (text, 0)


def test_code_keeps_all_but_the_codes_that_a_terminal_obeys() -> None:
    source = 'RED = "[31m"; OFF = "[0m"; {"a": "\\u001b[0m"}'
    assert as_printed(f"{source}{ESC}[0m", is_code=True) == (source, 1)
