"""Writing to a real cluster: each document once, in bulks of bounded size; resumable."""

import functools
import http.server
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from arag_search.corpus import Chunk, ordinal_of
from arag_search.engines.opensearch import bulk, schema
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.bulk import Bulks
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.lease import Lease
from arag_search.engines.opensearch.packing import bulk_line
from arag_search.engines.opensearch.shards import find_shard_terms
from arag_search.engines.opensearch.writer import IndexDefinition, OpenSearchWriter
from arag_search.errors import AragError, BuildError, UnavailableError
from tests.support.opensearch_indexes import MANIFEST, Site

DEFINITION = IndexDefinition(metadata={"year": "number"}, shards=2)
SIGNATURE = {"the sources": "x"}


def chunk(number: int, content: str = "The sea is wide. It is deep.", title: str = "") -> Chunk:
    cut = content.find(". ") + 2
    ends = (cut, len(content)) if cut > 1 else (len(content),)
    ordinal = ordinal_of(0, number, 0)
    return Chunk(f"d{number}.1", f"d{number}", title, content, 1, 1, ordinal, ends, {"year": 1.5})


CHUNKS = [chunk(number) for number in range(20)]


@functools.cache
def lease_of(client: Client, name: str) -> Lease:
    """Return the lease of a name, which all writers of a test share."""
    lease = Lease(client, name, name, "build")
    lease.take()
    return lease


def writer(
    site: Site, *, resume: bool = False, definition: IndexDefinition = DEFINITION, **options: Any
) -> OpenSearchWriter:
    """Create a writer of the physical index ``<name>-p``."""
    lease, name = lease_of(site.client, site.name), f"{site.name}-p"
    return OpenSearchWriter(
        site.client, name, definition, SIGNATURE, lease, resume=resume, **options
    )


def add(index_writer: OpenSearchWriter, chunks: list[Chunk]) -> None:
    index_writer.add_packed(index_writer.packer(chunks))


def test_a_finished_index_holds_all_documents_and_the_manifest(opensearch: Site) -> None:
    index_writer = writer(opensearch, max_bulk_bytes=1 << 16)
    add(index_writer, CHUNKS)
    assert index_writer.counts() == (20, 40)
    index_writer.finish(MANIFEST, {"build": "all"})
    physical = f"{opensearch.name}-p"
    documents = opensearch.documents(physical)
    assert [schema.chunk_of(stored) for stored in documents] == CHUNKS
    assert [int(stored["_id"]) for stored in documents] == [passage.ordinal for passage in CHUNKS]
    sentences = opensearch.documents(f"{physical}.sentences")
    assert [sentence["content"] for sentence in sentences[:2]] == [
        "The sea is wide. ",
        "It is deep.",
    ]
    meta = opensearch.meta(physical)
    assert (meta.manifest, meta.sentences) == (MANIFEST, f"{physical}.sentences")
    assert set(meta.chunk_terms) == {"content"}, "no chunk has a title"
    assert meta.build["state"] == {"build": "all"}
    assert index_writer.sent.created == 60


def test_a_writer_resumes_from_its_checkpoint_and_writes_nothing_twice(opensearch: Site) -> None:
    first = writer(opensearch)
    add(first, CHUNKS[:5])
    first.commit({"build": "five"})
    add(first, CHUNKS[5:9])
    assert first.has_document("d8"), "the check sends the documents that were added"
    first.abort()
    resumed = writer(opensearch, resume=True)
    assert resumed.checkpoint == {"build": "five"}
    assert list(resumed.document_ids()) == [f"d{number}" for number in range(5)]
    assert resumed.has_document("d4")
    assert not resumed.has_document("d5"), "it was written, but after the checkpoint"
    add(resumed, CHUNKS[5:])
    assert resumed.counts() == (20, 40)
    resumed.finish(MANIFEST, {})
    assert resumed.sent.existing == 12
    assert opensearch.deleted(f"{opensearch.name}-p*") == 0
    documents = opensearch.documents(f"{opensearch.name}-p")
    assert [schema.chunk_of(stored) for stored in documents] == CHUNKS


def test_blocks_that_other_processes_send_arrive_once_even_if_they_are_sent_again(
    opensearch: Site,
) -> None:
    index_writer = writer(opensearch)
    sending = pickle.loads(pickle.dumps(index_writer.block_writing()))
    packed = [index_writer.packer(CHUNKS[start : start + 5]) for start in range(0, 20, 5)]
    lost = sending(packed[2:])
    assert (lost.counts.created, lost.counts.existing) == (30, 0)
    index_writer.add_block(sending(packed[:2]))
    assert index_writer.has_document("d9")
    assert not index_writer.has_document("d10"), "its block is not added yet"
    again = sending(packed[2:])
    index_writer.add_block(again)
    assert (again.counts.created, again.counts.existing) == (0, 30)
    assert index_writer.counts() == (20, 40)
    index_writer.finish(MANIFEST, {})
    assert opensearch.deleted(f"{opensearch.name}-p*") == 0


def test_a_deleted_index_is_not_recreated_by_documents_still_being_sent(opensearch: Site) -> None:
    index_writer = writer(opensearch)
    opensearch.remove()
    add(index_writer, CHUNKS)
    with pytest.raises(BuildError) as caught:
        index_writer.commit({})
    index_writer.abort()
    assert str(caught.value) == (
        "The index was deleted while it was being written.\n"
        f"Where: {opensearch.name}-p\n"
        "Do: Run the same command again when no other build is running."
    )
    assert opensearch.indexes() == []


def test_every_shard_holds_one_of_the_shard_terms(opensearch: Site) -> None:
    name = f"{opensearch.name}-p"
    definition = replace(DEFINITION, shards=3, language="en")
    index_writer = writer(opensearch, definition=definition)
    add(
        index_writer,
        [chunk(number, f"word{number}.", title=f"Title {number}") for number in range(12)],
    )
    index_writer.counts()
    terms = find_shard_terms(opensearch.client, name, 3, "en")
    index_writer.abort()
    assert terms["title"] == terms["title_forms"] == ("title",)
    assert 1 < len(terms["content"]) <= 3, "no word is in two documents"
    for field, words in terms.items():
        for shard in range(3):
            reply = opensearch.client.call(
                "POST",
                f"/{name}/_search",
                {"query": {"terms": {field: list(words)}}},
                {"preference": f"_shards:{shard}"},
            )
            assert reply["hits"]["total"]["value"] >= 1


def refusal(site: Site, passage: Chunk) -> str:
    index_writer = writer(site)
    try:
        with pytest.raises(AragError) as caught:
            add(index_writer, [passage])
    finally:
        index_writer.abort()
        site.remove()
    return str(caught.value)


def test_a_chunk_that_cannot_be_stored_is_named(opensearch: Site) -> None:
    assert refusal(opensearch, replace(CHUNKS[0], id="x" * 40_000)).startswith(
        "An id or keyword has 40,000 bytes."
    )
    assert refusal(opensearch, replace(CHUNKS[0], title="\ud800")) == (
        "A passage cannot be stored: str is not valid UTF-8: surrogates not allowed.\n"
        "Where: passage 'd0.1'"
    )


# A server that refuses


class Server(http.server.BaseHTTPRequestHandler):
    """A server that accepts bulks of at most ``largest`` bytes, after it gave all ``answers``."""

    protocol_version = "HTTP/1.1"
    largest = 1 << 30
    answers: list[int]
    accepted: list[int]
    sizes: list[int]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.sizes.append(len(body))
        ids = [int(orjson.loads(line)["create"]["_id"]) for line in body.splitlines()[::2]]
        status = 413 if len(body) > self.largest else self.answers.pop(0) if self.answers else 200
        items = [{"create": {"status": 201}} for _ in ids]
        if status == 200:
            self.accepted.extend(ids)
        elif status == 207:  # Every second document is rejected.
            status = 200
            self.accepted.extend(ids[::2])
            for item in items[1::2]:
                error = {"type": "rejected_execution_exception", "reason": "queue full"}
                item["create"] = {"status": 429, "error": error}
        reply = orjson.dumps({"items": items}) if status == 200 else b"<html>no</html>"
        self.send_response(status)
        kind = "application/json" if status == 200 else "text/html"
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[type[Server], Client]]:
    class Own(Server):
        answers, accepted, sizes = [], [], []

    http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own)
    thread = threading.Thread(target=http_server.serve_forever, daemon=True)
    thread.start()
    client = Client(
        parse_address(f"http://127.0.0.1:{http_server.server_port}/x"), ConnectionOptions()
    )
    yield Own, client
    client.close()
    http_server.shutdown()
    http_server.server_close()
    thread.join()


def send(client: Client, documents: int, pauses: list[float], **options: Any) -> Bulks:
    """Send documents of about 1,000 bytes."""
    sender = Bulks(client, "x", senders=1, pause=pauses.append, **options)
    for number in range(documents):
        sender.add_lines([bulk_line("x", number, "r", {"text": "x" * 940})])
    try:
        sender.drain()
    finally:
        sender.abort()
    return sender


def test_an_overloaded_server_is_retried_with_smaller_bulks(
    server: tuple[type[Server], Client],
) -> None:
    own, client = server
    own.answers[:] = [429, 503, 429]
    pauses: list[float] = []
    sender = send(client, 400, pauses, max_bytes=400_000)
    assert sorted(own.accepted) == list(range(400))
    assert own.sizes[0] > 390_000
    assert own.sizes[3] <= 65_536, "halved twice, but not below the minimum"
    assert pauses == [0.1, 0.2, 0.4]
    assert (sender.counts.created, sender.counts.retries) == (400, 3)


def test_only_the_documents_that_were_rejected_are_sent_again(
    server: tuple[type[Server], Client],
) -> None:
    own, client = server
    own.answers[:] = [207]
    sender = send(client, 10, [])
    assert sorted(own.accepted) == list(range(10))
    assert own.sizes[1] < own.sizes[0] * 0.6
    assert (sender.counts.created, sender.counts.rejected) == (10, 5)


@pytest.mark.parametrize(
    ("largest", "most", "refused"),
    [
        (150_000, 400_000, 2),
        (150_000, 8 << 20, 3),  # the first bulk, of 1 MB
        (20_000, 400_000, 5),  # below the least size of other bulks
    ],
)
def test_bulks_too_large_for_the_server_are_halved_permanently(
    server: tuple[type[Server], Client], largest: int, most: int, refused: int
) -> None:
    own, client = server
    own.largest = largest
    send(client, 1000, [], max_bytes=most)
    assert sorted(own.accepted) == list(range(1000))
    assert sum(size > own.largest for size in own.sizes) == refused
    assert max(own.sizes[refused:]) > 0.5 * largest


def test_a_small_last_bulk_that_is_too_large_is_halved_at_once(
    server: tuple[type[Server], Client],
) -> None:
    own, client = server
    own.largest = 60_000
    send(client, 100, [])
    assert [size > own.largest for size in own.sizes] == [True, False, False, False]


def test_a_server_that_accepts_nothing_is_given_up_after_the_wait(
    server: tuple[type[Server], Client],
) -> None:
    own, client = server
    own.answers[:] = [503] * 3
    with pytest.raises(UnavailableError) as caught:
        send(client, 1, [], node_wait_s=0.0)
    assert str(caught.value) == (
        "The server took no documents for 0 s: The server is not able to answer: <html>no</html>\n"
        "Where: x\nDo: Check the cluster. Then run the same command again to resume."
    )


def test_a_long_wait_is_reported_once(
    server: tuple[type[Server], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, client = server
    own.answers[:] = [503, 503, 503, 503]
    monkeypatch.setattr(bulk, "_REPORT_S", 0.0)
    notes: list[str] = []
    send(client, 3, [], note=notes.append)
    assert notes == [
        "Waiting up to 600 s for the server: The server is not able to answer: <html>no</html>"
    ]


def test_a_bulk_is_bounded_in_bytes_unless_it_has_one_document(
    server: tuple[type[Server], Client],
) -> None:
    own, client = server
    send(client, 100, [], max_bytes=10_000)
    assert max(own.sizes) <= 10_000
    assert len(own.sizes) == 12, "8 or 9 documents in each bulk"
    own.sizes.clear()
    send(client, 3, [], max_bytes=10)
    assert len(own.sizes) == 3
    assert bulk.MAX_BULK_BYTES == 8 << 20
