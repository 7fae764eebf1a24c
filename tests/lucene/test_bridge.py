"""Our Java classes: compiled once into the cache, found on the class path from then on."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.lucene import bridge, jvm
from arag_search.engines.lucene.compile import any_of, chunk_ids, compiled, filtered
from arag_search.engines.lucene.packing import ChunkPacker
from arag_search.errors import BuildError, JvmError
from arag_search.query.parser import parse
from arag_search.query.tree import KeywordEquals

_LOAD = """
from arag_search.engines.lucene import bridge, jvm
jvm.start()
query = bridge.ours("Queries").read("t\\0title\\0alpha\\0")
print(query.toString(), query.getClass().getName(), len(bridge.on_class_path()))
"""
_LOADED = "title:alpha org.apache.lucene.search.TermQuery 1"


@pytest.fixture(scope="module")
def compiler_jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with Lucene and the compiler, and nothing of ours."""
    folder = tmp_path_factory.mktemp("jars")
    for jar in (jvm.LUCENE_CORE, *bridge.COMPILER_JARS):
        (folder / jar.file_name).symlink_to(jvm.resolve(jar, jvm.cache_folder()))
    return folder


@pytest.fixture
def cache(tmp_path: Path, compiler_jars: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    for jar in compiler_jars.iterdir():
        (folder / jar.name).symlink_to(jar)
    return folder


def _load(cache: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _LOAD],
        env={**os.environ, jvm.CACHE_VARIABLE: str(cache), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _printed(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err == ""
    return out.strip()


def test_two_processes_at_once_compile_and_a_later_one_does_not(cache: Path) -> None:
    assert [_printed(each) for each in (_load(cache), _load(cache))] == [_LOADED, _LOADED]
    [jar] = cache.glob("arag-*.jar")
    assert sorted(each.name for each in cache.iterdir() if each.name.startswith(".")) == []
    with zipfile.ZipFile(jar) as archive:
        assert "arag/Searcher.class" in archive.namelist()
    for each in bridge.COMPILER_JARS:
        (cache / each.file_name).unlink()
    before = jar.stat().st_mtime_ns
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    assert _printed(_load(cache, **nowhere)) == _LOADED
    assert jar.stat().st_mtime_ns == before


def test_a_jar_that_was_cut_short_is_made_again(cache: Path) -> None:
    [jar] = [cache / Path(name).name for name in _ours_here()]
    jar.write_bytes(Path(_ours_here()[0]).read_bytes()[:1000])
    assert _printed(_load(cache)) == _LOADED
    assert zipfile.ZipFile(jar).testzip() is None


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path) -> None:
    blocked = cache / Path(_ours_here()[0]).name
    blocked.mkdir()  # no file can be renamed to it, whoever runs the test
    out = _printed(_load(cache))
    assert out == _LOADED[:-1] + "0"


def test_without_a_registry_the_message_says_what_is_needed_and_why(cache: Path) -> None:
    (cache / bridge.COMPILER_JARS[0].file_name).unlink()
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    _, err = _load(cache, **nowhere).communicate(timeout=60)
    assert "org.codehaus.janino:janino:3.1.12 cannot be downloaded" in err
    assert "It is needed once, to compile the Java classes of this package." in err


def _ours_here() -> list[str]:
    bridge.ours("Queries")
    return bridge.on_class_path()


def test_what_is_no_query_is_refused() -> None:
    with pytest.raises(jvm.java_error(), match="no query is written"):
        bridge.ours("Queries").read("%\0")


@pytest.mark.parametrize(
    ("text", "lucene"),
    [
        ("title:alpha", "title:alpha"),
        ('content:"alpha beta"~3^2', '(content:"alpha beta"~3)^2.0'),
        ("title:alph*", "ConstantScore(title:alph*)"),
        ("title:alpha AND NOT title:beta", "+title:alpha -title:beta"),
        ("year:>=1700 AND title:alpha", "#metadata.year:[1700.0 TO Infinity] +title:alpha"),
        ("year:{1 TO 2}", "metadata.year:[1.0000000000000002 TO 1.9999999999999998]"),
    ],
)
def test_queries_cross_to_java_as_they_are(text: str, lucene: str) -> None:
    tree = parse(text).tree
    assert str(bridge.ours("Queries").read(compiled(tree)[0]).toString()) == lucene


def test_separators_in_values_are_values() -> None:
    value = "a\0b\\0\\"
    query = compiled(KeywordEquals("lang", value))[0]
    both = any_of([query, chunk_ids([value, "\\"])])
    read = bridge.ours("Queries").read(filtered(both, query))
    assert str(read.toString()).count(value) == 3
    assert str(bridge.ours("Queries").read(query).getTerm().text()) == value


def test_packing_needs_no_java_and_says_whether_ordinals_grow() -> None:
    code = (
        "import sys; from arag_search.engines.lucene import packing;"
        "sys.exit('jpype' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    pack = ChunkPacker({})
    assert pack([_chunk(1), _chunk(2)]).ordinals == (1, 2)
    assert pack([_chunk(2), _chunk(1)]).ordinals is None
    assert pack([]) == ChunkPacker({"lang": "keyword"})([])


def test_text_that_is_not_unicode_is_not_packed() -> None:
    with pytest.raises(BuildError, match="A chunk that cannot be stored"):
        ChunkPacker({})([_chunk(1, "\ud800")])


def _chunk(ordinal: int, text: str = "alpha") -> Chunk:
    return Chunk(f"{ordinal}.1", str(ordinal), "", text, 1, 1, ordinal, (len(text),), {})


def test_a_compiler_that_refuses_names_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "_source", lambda name: "package arag; class Limit {")
    with pytest.raises(JvmError) as caught:
        bridge._compiled()
    assert str(caught.value).startswith("A Java class of this package cannot be compiled: ")
    assert "Where: Limit.java" in str(caught.value)
