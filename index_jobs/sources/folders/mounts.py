"""Which file systems are of other machines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache

_REMOTE = re.compile(
    r"nfs\d?|cifs|smb\w*|afpfs|webdav|davfs2?|9p|ceph|glusterfs|lustre|afs|virtiofs"
    r"|fuse\.(sshfs|rclone|s3fs|gcsfuse|davfs2?|glusterfs|curlftpfs)",
    re.ASCII,
)
_OCTAL = re.compile(r"\\(\d{3})")  # how a blank in a path is written
_SHOWN = re.compile(r" on (/.*) \((\w+)")  # a line of mount on macOS


def is_remote(path: str) -> bool:
    """Return whether a real path is on a network mount, as far as the system says so."""
    mounts = _mounts()
    while path not in mounts and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return _REMOTE.fullmatch(mounts.get(path, "")) is not None


@cache
def _mounts() -> dict[str, str]:
    """Return the kind of each file system by the place where it is mounted."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        if sys.platform == "darwin":
            done = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=10)
            return {match[1]: match[2] for match in _SHOWN.finditer(done.stdout)}
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            pairs = [line.split(" - ", 1) for line in lines]
            return {
                _OCTAL.sub(lambda code: chr(int(code[1], 8)), before.split(" ")[4]): after.split()[
                    0
                ]
                for before, after in pairs
            }
    return {}
