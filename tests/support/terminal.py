"""Control sequences that a terminal obeys, and the pattern that finds them in a text."""

import re

OBEYED = {
    "clipboard": "\x1b]52;c;Zm9v\x07",
    "title of the window": "\x1b]0;owned\x1b\\",
    "colour": "\x1b[31m",
    "colour, in one character of C1": "\x9b31m",
    "start of the line": "a\rb",
    "backspace and delete": "\x08\x7f",
    "nul": "\0",
    "override of the direction": "\u202eabc\u2066",
}


COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\r?\n)"
)
