"""The jar of our Java classes, compiled from the sources to the same bytes on every machine.

The compiler is javac, packaged as a library. Only this development command needs it: the jar is
part of the package.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import tempfile
import zipfile
from pathlib import Path

from arag_search.engines.jars import PinnedJar, java_command, verified_jar
from arag_search.engines.lucene.jvm import LUCENE_CORE
from arag_search.errors import JvmError
from arag_search.system.cache import cache_folder

COMPILER = PinnedJar(
    group="org.frgaal",
    artifact="compiler",
    version="25.0.0",
    sha256="cbe9c235a00991bbba601ae9e14772dd216d7b7f886c759cb2486785626394de",
    size=15_558_878,
)
SOURCES_FOLDER = Path(__file__).parent

_MAIN_CLASS = "org.frgaal.Main"
_OPTIONS = (
    # What Lucene itself needs. Another library may have started a Java that is not newer.
    *("--release", "21"),
    *("-Xlint:all", "-Werror", "-g"),
    # The default loads some hundred classes for the first string that is concatenated.
    "-XDstringConcat=inline",
)
_MANIFEST = "META-INF/MANIFEST.MF"
_DIGEST_KEY = "Inputs-SHA-256: "
_LINE_END = "\r\n"
_CONTINUED = f"{_LINE_END} "


def rebuilt(folder: Path = SOURCES_FOLDER) -> bytes:
    """Return the jar that the sources in a folder make. Raises JvmError with javac's messages."""
    with tempfile.TemporaryDirectory(prefix="arag-classes-") as name:
        output = Path(name)
        _compile(_sources(folder), output)
        files = {_MANIFEST: _manifest(folder)}
        for path in sorted(output.rglob("*.class")):
            files[path.relative_to(output).as_posix()] = path.read_bytes()
    return _packed(files)


def recorded_digest(jar: Path) -> str:
    """Return the SHA-256 of the inputs that a jar was made from, as its manifest says."""
    with zipfile.ZipFile(jar) as archive:
        manifest = archive.read(_MANIFEST).decode("ascii").replace(_CONTINUED, "")
    return manifest.partition(_DIGEST_KEY)[2].partition(_LINE_END)[0]


def inputs_digest(folder: Path = SOURCES_FOLDER) -> str:
    """Return the SHA-256 of everything that the jar depends on: sources, compiler, Lucene."""
    digest = hashlib.sha256("\n".join((*_OPTIONS, COMPILER.sha256, LUCENE_CORE.sha256)).encode())
    for path in _sources(folder):
        digest.update(f"\n{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.java"))


def _compile(sources: list[Path], output: Path) -> None:
    compiler, lucene = (verified_jar(jar, cache_folder()) for jar in (COMPILER, LUCENE_CORE))
    java = [java_command(), "-cp", str(compiler), _MAIN_CLASS]
    options = [*_OPTIONS, "-cp", str(lucene), "-d", str(output)]
    done = subprocess.run(
        [*java, *options, *map(str, sources)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise JvmError(
            f"The Java sources do not compile:\n{done.stdout}{done.stderr}".rstrip(),
            where=", ".join(path.name for path in sources),
            do="Correct them, then rebuild the jar again.",
        )


def _manifest(folder: Path) -> bytes:
    digest = f"{_DIGEST_KEY}{inputs_digest(folder)}"
    lines = ["Manifest-Version: 1.0", f"{digest[:70]}{_CONTINUED}{digest[70:]}", "", ""]
    return _LINE_END.join(lines).encode("ascii")


def _packed(files: dict[str, bytes]) -> bytes:
    """Return a zip archive without times, and uncompressed: releases of zlib differ in bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()
