"""The commands read, check, info and demo."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.cli.info import check_counts
from arag_search.engines.lucene import snapshot
from arag_search.engines.lucene.reader import IndexStatistics, PartStatistics
from arag_search.engines.lucene.update import LuceneUpdate
from arag_search.engines.write import UpdateRecord
from arag_search.errors import IndexDamagedError
from arag_search.manifest import Manifest
from arag_search.search.standing import Standing, identity_of, note_standing, now
from tests.support.commands import NOT_ALTERNATIVE, SAMPLE, Command, CommandResult

pytestmark = pytest.mark.usefixtures("commands_folder")


# read


def test_read_prints_chunks_in_full_a_blank_line_between(arag: Command) -> None:
    done = arag("read", "plain", "n1.1", "n0.1", "n1.1")
    assert done == CommandResult(
        0,
        "[n1.1]\nBeta gamma beta.\n\n[n0.1]\nAlpha beta. Gamma delta.\n\n"
        "[n1.1]\nBeta gamma beta.\n",
        "",
    )
    assert arag("read", "my-index", "vivaldi.1").out.startswith(
        "[vivaldi.1] Antonio Vivaldi\n(year: 1678; kind: person)\nAntonio Vivaldi was an Italian"
    )


def test_the_json_of_a_read_is_a_list_of_chunks(arag: Command) -> None:
    assert arag("read", "plain", "n0.1", "--json").json["passages"] == [
        {
            "id": "n0.1",
            "doc_id": "n0",
            "title": "",
            "part": 1,
            "parts": 1,
            "content": "Alpha beta. Gamma delta.",
            "sentences": ["Alpha beta. ", "Gamma delta."],
            "metadata": {},
            "previous_id": None,
            "next_id": None,
        }
    ]


def test_unknown_ids_are_all_named(arag: Command) -> None:
    assert arag("read", "plain", "n0.1", "n7.1", "\udcff") == CommandResult(
        1,
        "",
        'arag-search: No passages have the ids "n7.1", "\\udcff".\nWhere: plain\n'
        "Allowed: ids as searches show them in brackets\nDo: Search first, and copy the id.\n",
    )


# check


def test_check_shows_the_canonical_form_the_tree_and_the_tokens(arag: Command) -> None:
    done = arag("check", 'vivaldi (a OR COVID-19)^2 NOT title:it\'s AND year:1678 "=x y"~2')
    assert done == CommandResult(
        0,
        '(vivaldi OR (a OR COVID-19)^2 OR (year:1678 AND NOT title:it\'s) OR "=x y"~2)\n'
        "\n"
        "OR\n"
        "├── vivaldi    tokens: vivaldi; in title, content\n"
        "├── OR ^2\n"
        "│   ├── a    tokens: a; in title, content\n"
        "│   └── COVID-19    tokens: covid 19; in title, content\n"
        "├── AND\n"
        "│   ├── year:1678    filter\n"
        "│   └── NOT\n"
        "│       └── title:it's    tokens: it's | it’s; in title\n"
        '└── "=x y"~2    tokens: x y; in title, content\n'
        'Note: whether an index has a field "year" was not checked; its type was guessed.\n',
        "",
    )


def test_check_says_how_far_a_prefer_and_a_demote_apply(arag: Command) -> None:
    assert arag("check", "a OR b AND PREFER c NOT dd DEMOTE^0.2 e").out == (
        "((a OR (b PREFER c)) AND NOT dd DEMOTE^0.2 e)\n"
        "\n"
        "AND\n"
        "├── OR\n"
        "│   ├── a    tokens: a; in title, content\n"
        "│   └── AND\n"
        "│       ├── b    tokens: b; in title, content\n"
        "│       └── PREFER    raises what it matches among: b\n"
        "│           └── c    tokens: c; in title, content\n"
        "├── NOT\n"
        "│   └── dd    tokens: dd; in title, content\n"
        "└── DEMOTE, score x 0.2    lowers what it matches among: ((a OR b) AND NOT dd)\n"
        "    └── e    tokens: e; in title, content\n"
    )
    tree = arag("check", "--json", "a OR (b PREFER c) DEMOTE d").json["tree"]
    alternatives, demote = tree["children"]
    assert (demote["factor"], demote["among"]) == (0.5, "(a OR b)")
    prefer = alternatives["children"][1]["children"][1]
    assert (prefer["kind"], prefer["among"]) == ("Prefer", "b")


def test_check_with_an_index_knows_its_fields(arag: Command) -> None:
    assert arag("check", "author:Walker", "year:1678", "--index", "my-index").code == 1
    assert arag("check", "year:1678", "--index", "my-index").out == (
        "year:1678\n\nyear:1678    filter\n"
        "Note: no words to rank by: passages are in corpus order.\n"
    )
    assert arag("check", "--index", "my-index", "author:Walker") == CommandResult(
        2,
        "",
        'Query not run: 1 problem.\n1. column 1, "author:": there is no field "author". Fields: '
        "title, content, doc_id, year (number), kind (keyword). Text with a colon is quoted.\n"
        'Write: "author Walker"\n',
    )


def test_the_json_of_a_check_has_the_same_keys_for_good_and_bad_queries(arag: Command) -> None:
    def term(word: str) -> dict[str, object]:
        fields = ["title", "content"]
        return {"kind": "Term", "query": word, "tokens": [[word]], "fields": fields}

    good = arag("check", "a AND NOT bb^1", "--json")
    assert good.code == 0
    assert good.json == {
        "query": "a AND NOT bb^1",
        "understood": "(a AND NOT bb)",
        "tree": {
            "kind": "And",
            "weight": 1.0,
            "children": [term("a"), {"kind": "Not", "children": [term("bb")]}],
        },
        "notes": [],
        "problems": [],
        "mended": None,
    }
    bad = arag("check", "a OR NOT bb", "--json")
    assert (bad.code, bad.err) == (2, "")
    problem = {"column": 6, "piece": "NOT bb", "message": NOT_ALTERNATIVE, "values": {}}
    assert bad.json == {
        "query": "a OR NOT bb",
        "understood": None,
        "tree": None,
        "notes": [],
        "problems": [problem | {"kind": "NOT_ALTERNATIVE"}],
        "mended": "(a AND NOT bb)",
    }


def test_half_a_character_is_refused_and_printed_as_json(arag: Command) -> None:
    surrogate = "this is half of a character (a lone surrogate). Text must be valid Unicode; " \
        "leave it out."  # fmt: skip
    done = arag("check", "a\udcff", "--json")
    assert done.code == 2
    assert done.json["query"] == "a\udcff"
    (problem,) = done.json["problems"]
    assert (problem["column"], problem["piece"], problem["message"]) == (2, "?", surrogate)
    assert arag("search", "my-index", "a\udcff", "--json").json["query"] == "a\udcff"
    assert arag("search", "my-index", "--tool", "keyword", "a\udcff").err == (
        "arag-search: A keyword holds half of a character (a lone surrogate).\n"
        "Allowed: valid Unicode\nDo: Leave it out.\n"
    )


# info


def test_info_describes_an_index_in_words(arag: Command) -> None:
    done = arag("info", "my-index", "--checksums")
    assert done.code == 0
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", "TIME", done.out)
    text = re.sub(r"[\d,]+ bytes in \d+ files, 1 segment\n", "BYTES\n", text)
    text = re.sub(r"[0-9a-f]{64}", "FINGERPRINT", text)
    assert text == (
        "Index my-index\n"
        f"  built        TIME from {SAMPLE} (documents)\n"
        "  holds        63 documents, 63 passages (cut at 1,000 tokens), 393 sentences, 8,916 "
        "tokens\n"
        "  words        match their forms in en: words, signs, unspaced, scripts, symbols, "
        "letters, points, particles, lemmas of en (simplemma 2.0.0), typed plain, endings, "
        "accents, identifiers, names within, cut names, texts beside, initials, marks, Han\n"
        "  lines        folded at 200 characters\n"
        "  serves       passages and sentences; fields title, content, doc_id, year (number), kind "
        "(keyword)\n"
        "  titles       yes\n"
        "  ranking      BM25, k1 1.2, b 0.75; standard analyser\n"
        "  engine       lucene 10.5.1, format 8, update 1\n"
        "  fingerprint  FINGERPRINT\n"
        "  placement    FINGERPRINT\n"
        "  on disk      passage index: BYTES\n"
        "  on disk      sentence index: BYTES\n"
        "  verified     counts, checksums and passages agree\n"
    )
    lines = arag("info", "plain").lines
    assert "  serves       passages; fields title, content, doc_id" in lines
    assert "  titles       none: title: finds nothing" in lines
    assert lines[-1] == (
        "  verified     counts agree; --checksums reads passages, vectors and files too"
    )


def test_the_json_of_info_holds_the_manifest_and_the_files(arag: Command) -> None:
    report = arag("info", "plain", "--json").json
    assert list(report) == [
        "location",
        "manifest",
        "files",
        "deleted_share",
        "verified",
        "unfinished_update",
        "cluster",
        "vectors",
        "state",
    ]
    manifest = Manifest.from_json(json.dumps(report["manifest"]), "here")
    assert (manifest.documents, manifest.sentences, manifest.without) == (3, 4, ("sentences",))
    assert report["files"]["sentences"] is None
    assert list(report["files"]["chunks"]) == ["documents", "deleted", "segments", "files", "bytes"]
    assert report["verified"] == ["counts"]
    verified = arag("info", "plain", "--json", "--checksums").json["verified"]
    assert verified == ["counts", "checksums", "passages"]


@pytest.mark.usefixtures("own_cache")
def test_info_shows_all_that_is_known_of_the_files(arag: Command) -> None:
    assert arag("info", "plain", "--json").json["state"] is None
    standing = Standing(
        identity_of("plain"),
        ("/nowhere/notes",),
        now(),
        changed_files=3,
        changed=("a/plan.md",),
        problem="The synchronisation would delete\n9 documents.",
        not_read={"pdf could not be read": 2, "ipynb": 1},
    )
    note_standing(standing)
    state = arag("info", "plain", "--json").json["state"]
    shown = ("in_step", "changed_files", "problem", "not_read", "gone")
    assert [state[key] for key in shown] == [
        standing.in_step,
        3,
        standing.problem,
        standing.not_read,
        ["/nowhere/notes"],
    ]
    lines = arag("info", "plain").lines
    assert f"  up to date   {standing.in_step}, with /nowhere/notes" in lines
    assert f"  behind       {standing.line()}" in lines
    assert "  problem      The synchronisation would delete 9 documents." in lines
    assert "  not read     2 pdf could not be read, 1 ipynb" in lines


def test_passages_that_are_not_those_of_the_manifest_are_found_by_reading_them(
    arag: Command,
) -> None:
    shutil.copytree("plain", "told otherwise")
    with LuceneUpdate(Path("told otherwise")) as target:
        record = UpdateRecord("", "", target.manifest.update + 1)
        target.begin(record, target.manifest.metadata)
        target.publish(replace(target.manifest, placement="0" * 64, update=record.update), record)
    assert arag("info", "told otherwise").code == 0
    done = arag("info", "told otherwise", "--checksums")
    assert (done.code, done.out) == (4, "")
    assert done.err == (
        "arag-search: The passages are not those of the manifest: another placement.\n"
        "Where: told otherwise\nDo: Build the index again with --overwrite.\n"
    )


def test_counts_that_do_not_agree_are_an_error() -> None:
    manifest = Manifest(
        engine="lucene",
        engine_version="10.5.1",
        created="",
        documents=2,
        chunks=2000,
        sentences=5,
        tokens=9,
        chunk_tokens=1000,
        fingerprint="",
        placement="",
    )
    part = PartStatistics(documents=1999, deleted=0, segments=1, files=4, bytes=9)
    with pytest.raises(IndexDamagedError) as caught:
        check_counts(manifest, IndexStatistics(part, None), "my-index")
    assert str(caught.value) == (
        "The manifest says 2,000 passages, the index holds 1,999.\nWhere: my-index\n"
        "Do: Build the index again with --overwrite."
    )


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Path]:
    """Yield the largest file of ``broken``, a copy of the index, to be damaged."""
    shutil.copytree("my-index", "broken")
    yield max(Path("broken").glob("g*/chunks/*"), key=lambda path: path.stat().st_size)
    shutil.rmtree("broken")


@pytest.mark.parametrize(
    ("command", "code"),
    [(["info", "broken"], 4), (["search", "broken", "beta"], 2), (["read", "broken", "n0.1"], 2)],
)
def test_a_truncated_file_is_noticed_on_opening(
    arag: Command, broken: Path, command: list[str], code: int
) -> None:
    broken.write_bytes(broken.read_bytes()[:-20])
    done = arag(*command)
    assert (done.code, done.out) == (code, "")
    assert re.fullmatch(
        r"arag-search: The passages of the index cannot be opened: CorruptIndexException: .*\n"
        r"Where: broken\n"
        r"Do: Build the index again with --overwrite\.\n",
        done.err,
    )


def test_a_flipped_bit_is_found_by_a_checksum(
    arag: Command, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "VERIFIED_BYTES", 0)  # as in a large index
    data = bytearray(broken.read_bytes())
    data[len(data) // 2] ^= 1
    broken.write_bytes(data)
    done = arag("info", "broken", "--checksums")
    assert (done.code, done.out) == (4, "")
    assert re.fullmatch(
        r"arag-search: A file of the index is damaged: CorruptIndexException: checksum failed .*\n"
        r"Where: broken\n"
        r"Do: Build the index again with --overwrite\.\n",
        done.err,
    )


@pytest.mark.parametrize(
    ("location", "what"),
    [
        ("nowhere", "There is no index.\nWhere: nowhere"),
        ("plain.jsonl", "This is a file, not an index.\nWhere: plain.jsonl"),
        ("Plian", "There is no index.\nWhere: Plian\nDo: Name one that is there: plain. Or build"),
        (
            "localhost:9200/wiki",
            "There is no index.\nWhere: localhost:9200/wiki\n"
            "Do: Begin the address of a server with http:// or https://: http://localhost:9200/wiki",
        ),
        ("empty", "The folder holds no index.\nWhere: empty"),
        (" ", "The path of the index is empty.\nAllowed: a file or folder"),
        ("caf\udce9", "The path of the index is not UTF-8.\nWhere: caf\\udce9"),
        (
            "https://localhost/wiki",
            'The address names the host "localhost".\nWhere: https://localh',
        ),
    ],
)
def test_every_command_reports_a_location_without_an_index(
    arag: Command, location: str, what: str
) -> None:
    Path("empty").mkdir(exist_ok=True)
    for code, command in (
        (2, ["search", location, "vivaldi"]),
        (2, ["read", location, "vivaldi.1"]),
        (2, ["words", location, "vivaldi"]),
        (3 if " no index" in what or " not an" in what else 1, ["info", location]),
        (1, ["check", "vivaldi", "--index", location]),
    ):
        done = arag(*command)
        assert (done.code, done.out) == (code, "")
        assert done.err.startswith(f"arag-search: {what}")


# demo


def test_the_demo_shows_replies_and_the_next_commands(arag: Command) -> None:
    done = arag("demo", "--to", "demo index")
    assert (done.code, done.err) == (0, "")
    assert re.match(
        r"The sample corpus: 63 short articles with two-hop links, near-duplicate names and "
        r"distractors, indexed in \d+\.\d s\.\n",
        done.out,
    )
    for text in (
        "\n> logical_search vivaldi opera\n2 of 18 passages for (vivaldi OR opera)\n",
        '\n> logical_search "antonio vivaldi" AND librett*\n2 of 8 passages\n',
        "\n2 of 4 passages for "
        '("antonio vivaldi" AND librett* AND year:>=1690 AND NOT title:griselda)\n',
        "\nNo passage matches this query.",
        "\n  (error, 99 tokens)\n",
        "\n> chunk_read griselda-vivaldi.1\n"
        "[griselda-vivaldi.1] Griselda (Vivaldi) (whole document)\n",
        "with the offline model: built-in rules, no language model.\nSet ARAG_MODEL",
        "\n? In which town was the engineer",
        "\nJohn A. Roebling was an engineer and manufacturer, born on 12 June 1806 in Mühlhausen",
        "\n[brooklyn-bridge.1] Brooklyn Bridge\n",
        "\nDomenico Scarlatti was a composer",
        "\nCarlo Goldoni: In 1762 he moved to Paris",
    ):
        assert text in done.out
    (command,) = re.findall(r"\n  arag-search (search .* NOT title:scarlatti)'\n", done.out)
    assert command.startswith("search 'demo index' 'griselda AND")
    repetition = arag("demo", "--to", "demo index")
    assert repetition == CommandResult(
        1,
        "",
        "arag-search: There is an index already.\nWhere: demo index\n"
        "Do: Name a folder that does not exist yet: arag-search demo --to INDEX\n",
    )
