"""Our Java classes: the jar in the package matches its sources, and needs no compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.jars import verified_jar
from arag_search.engines.lucene.compile import any_query, chunk_ids, compiled, filtered
from arag_search.engines.lucene.java import jar
from arag_search.engines.lucene.jvm import CLASSES_JAR, LUCENE_CORE, java, java_error
from arag_search.engines.lucene.schema import ChunkPacker
from arag_search.errors import BuildError, JvmError
from arag_search.query.reading import parse
from arag_search.query.tree import KeywordEquals
from arag_search.system.cache import CACHE_VARIABLE, cache_folder
from tests.support.absent import cannot_run
from tests.support.patience import PATIENCE_S
from tests.support.plans import written


@pytest.fixture
def compiler() -> None:
    """Skip the test if the compiler is neither cached nor downloadable; in CI, fail instead."""
    try:
        verified_jar(jar.COMPILER, cache_folder())
    except JvmError as error:
        cannot_run(f"no compiler: {error.what}")


def test_the_jar_records_the_sources_and_the_compiler_it_was_built_with() -> None:
    rebuild = "python -m arag_search.engines.lucene.java"
    assert jar.recorded_digest(CLASSES_JAR) == jar.inputs_digest(), f"run {rebuild}"


@pytest.mark.usefixtures("compiler")
def test_rebuilding_the_jar_gives_the_same_bytes() -> None:
    assert jar.rebuilt() == CLASSES_JAR.read_bytes()


def test_a_changed_source_changes_the_recorded_digest(tmp_path: Path) -> None:
    for source in jar.SOURCES_FOLDER.glob("*.java"):
        shutil.copy(source, tmp_path)
    assert jar.inputs_digest(tmp_path) == jar.inputs_digest()
    with (tmp_path / "Limit.java").open("a") as source:
        source.write("\n")
    assert jar.inputs_digest(tmp_path) != jar.inputs_digest()


@pytest.mark.usefixtures("compiler")
def test_a_warning_of_the_compiler_is_an_error_with_its_message(tmp_path: Path) -> None:
    (tmp_path / "Raw.java").write_text("class Raw { java.util.List list; }")
    with pytest.raises(JvmError) as caught:
        jar.rebuilt(tmp_path)
    assert caught.value.what.startswith("The Java sources do not compile:")
    assert "found raw type: List" in caught.value.what
    assert caught.value.where == "Raw.java"


def test_with_lucene_in_the_cache_nothing_else_is_downloaded_or_written(tmp_path: Path) -> None:
    (tmp_path / LUCENE_CORE.file_name).symlink_to(verified_jar(LUCENE_CORE, cache_folder()))
    code = "from arag_search.engines.lucene.jvm import java\nprint(java('arag.Searcher').__name__)"
    dead_proxies = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **dead_proxies, CACHE_VARIABLE: str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (process.stdout, process.stderr) == ("arag.Searcher\n", "")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".aot.runs", LUCENE_CORE.file_name]


def test_bytes_that_are_no_query_are_refused() -> None:
    with pytest.raises(java_error(), match="no query is written"):
        java("arag.Queries").read("%\0")


@pytest.mark.parametrize(
    ("text", "lucene"),
    [
        ("title:alpha", "title:alpha"),
        ('content:"alpha beta"~3^2', '(content:"alpha beta"~3)^2.0'),
        ("title:alph*", "ConstantScore(title:alph*)"),
        ("title:alpha AND NOT title:beta", "+title:alpha -title:beta"),
        (
            "year:>=1700 AND title:alpha",
            "+title:alpha #metadata.year:[1700.0 TO 1.7976931348623157E308]",
        ),
        ("year:{1 TO 2}", "metadata.year:[1.0000000000000002 TO 1.9999999999999998]"),
    ],
)
def test_queries_reach_java_unchanged(text: str, lucene: str) -> None:
    tree = parse(text, as_written=True).tree
    assert str(java("arag.Queries").read(compiled(written(tree).root)[0]).toString()) == lucene


def test_separators_inside_values_are_part_of_the_value() -> None:
    value = "a\0b\\0\\"
    query = compiled(written(KeywordEquals("lang", value)).root)[0]
    either = any_query([query, chunk_ids([value, "\\"])])
    parsed = java("arag.Queries").read(filtered(either, query))
    assert str(parsed.toString()).count(value) == 3
    assert str(java("arag.Queries").read(query).getTerm().text()) == value


def test_packing_needs_no_java_and_reports_whether_ordinals_grow() -> None:
    code = (
        "import sys; from arag_search.engines.lucene import schema;sys.exit('jpype' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    pack = ChunkPacker({})
    assert pack([_chunk(1), _chunk(2)]).ordinals == (1, 2)
    assert pack([_chunk(2), _chunk(1)]).ordinals is None
    assert pack([]) == ChunkPacker({"lang": "keyword"})([])


def test_text_that_is_not_unicode_is_not_packed() -> None:
    with pytest.raises(BuildError, match="A passage cannot be stored"):
        ChunkPacker({})([_chunk(1, "\ud800")])


def _chunk(ordinal: int, text: str = "alpha") -> Chunk:
    return Chunk(f"{ordinal}.1", str(ordinal), "", text, 1, 1, ordinal, (len(text),), {})
