"""What others may put in the place of a small file."""

import os
from pathlib import Path


def put_hostile(path: Path, what: str) -> None:
    """Put something where a small file of JSON is expected that must not be read as one."""
    match what:
        case "pipe":
            os.mkfifo(path)
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "link":
            path.with_name("target").write_text("{}")
            path.symlink_to("target")
        case "folder":
            path.mkdir()
        case "deep":
            path.write_text("[" * 4000)
        case _:
            path.write_bytes(b" " * 5000)
