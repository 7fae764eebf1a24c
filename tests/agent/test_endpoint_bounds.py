"""Bounds on endpoints and servers: time of a call, bytes of a reply, and where data goes."""

import gzip
import itertools
import json
import socket
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from arag_search.agent.models.openai import OpenAIModel
from arag_search.endpoints.calls import MAX_REPLY_BYTES
from arag_search.endpoints.client import BoundedClient, UnreadableReplyError
from arag_search.errors import (
    AragError,
    ConfigError,
    ModelAccessError,
    ModelReplyError,
    ModelUnavailableError,
)
from tests.support.endpoint import Answer, Endpoint, completion, running_endpoint
from tests.support.openai_asking import FINAL, KEY
from tests.support.raw_server import HEAD, RawServer, byte_by_byte, raw_server, reply
from tests.support.unruly_server import Answer as UnrulyAnswer
from tests.support.unruly_server import unruly

BODY = json.dumps(completion("Answer: Vivaldi").body).encode()
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
TIME_LIMIT_S = 0.2
PAUSE_S = 0.01


@pytest.fixture
def unread() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with pytest.MonkeyPatch.context() as patch, raw_server() as running:
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield running


def model_at(server: RawServer, **options: Any) -> OpenAIModel:
    return OpenAIModel("m", base_url=f"{server.url}/v1", key=KEY, max_retries=0, **options)


def model_error(error: type[AragError], server: RawServer, **options: Any) -> AragError:
    """Send a request to a model, and return the error that it raises."""
    model = model_at(server, **options)
    with pytest.raises(error) as caught:
        model.reply(FINAL)
    model.close()
    return caught.value


def in_chunks(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    return HEAD + CHUNKED + b"".join(chunks) + b"0\r\n\r\n"


# Bounds on time


@pytest.mark.parametrize("response", [reply(BODY), in_chunks(BODY, 1)])
def test_the_time_limit_of_a_model_is_for_the_whole_call_and_not_for_each_byte(
    server: RawServer, response: bytes
) -> None:
    server.reply_with(byte_by_byte(response), PAUSE_S)
    error = model_error(ModelUnavailableError, server, timeout_s=TIME_LIMIT_S)
    assert "the endpoint did not answer in full within 0.2 s" in error.what
    assert 0 < server.sent < len(response)


def test_a_reply_in_many_pieces_that_arrives_in_time_is_read(server: RawServer) -> None:
    for response in (reply(BODY), in_chunks(BODY, 7)):
        server.reply_with(byte_by_byte(response))
        model = model_at(server)
        assert model.reply(FINAL).text == "Answer: Vivaldi"
        model.close()


EMPTY_BLOCK = b"5\r\n\0\0\0\xff\xff\r\n"
GZIPPED = HEAD + b"Content-Encoding: gzip\r\n" + CHUNKED + b"a\r\n\x1f\x8b\x08%c\0\0\0\0\0\3\r\n"
ENDLESS = {
    "a status line": (b"HTTP/1.1 200 O", b"K"),
    "a header": (b"HTTP/1.1 200 OK\r\na: ", b"b"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
    "100 Continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "an extension of a chunk": (HEAD + CHUNKED + b"1;", b"a"),
    "trailers": (HEAD + CHUNKED + b"0\r\n", b"a: b\r\n"),
    "empty blocks of gzip": (GZIPPED % 0, EMPTY_BLOCK),
    "a name in gzip": (GZIPPED % 8, b"1\r\na\r\n"),
    "what follows gzip": (
        HEAD
        + b"Content-Encoding: gzip\r\n"
        + CHUNKED
        + in_chunks(gzip.compress(BODY), 99)[len(HEAD + CHUNKED) : -len(b"0\r\n\r\n")],
        b"1\r\na\r\n",
    ),
}
"""Replies that never end: how they begin, and what is then repeated."""


@pytest.mark.parametrize("begin", ENDLESS)
def test_no_reply_holds_a_connection_for_longer_than_the_time_limit(
    server: RawServer, begin: str
) -> None:
    first, again = ENDLESS[begin]
    server.reply_with(itertools.chain([first], itertools.repeat(again, 5_000)), PAUSE_S)
    error = model_error(ModelUnavailableError, server, timeout_s=TIME_LIMIT_S)
    assert "the endpoint did not answer in full within 0.2 s" in error.what


@pytest.mark.parametrize("begin", ENDLESS)
def test_what_is_received_is_counted_before_it_is_decompressed(
    server: RawServer, begin: str
) -> None:
    first, again = ENDLESS[begin]
    server.reply_with(itertools.chain([first], itertools.repeat(again * 1_000)))
    client = BoundedClient(timeout_s=60, max_reply_bytes=40_000)
    with pytest.raises((UnreadableReplyError, httpx2.RemoteProtocolError)):
        client.get(server.url)
    client.close()


def test_a_server_that_does_not_read_the_request_is_given_up(unread: socket.socket) -> None:
    client = BoundedClient(timeout_s=TIME_LIMIT_S, max_reply_bytes=1)
    with pytest.raises(httpx2.WriteTimeout):
        client.post(f"http://127.0.0.1:{unread.getsockname()[1]}", content=bytes(20 << 20))
    client.close()


def test_a_server_that_does_not_speak_tls_is_given_up(server: RawServer) -> None:
    server.reply_with(itertools.repeat(b"\x16", 5_000), PAUSE_S)
    client = BoundedClient(timeout_s=TIME_LIMIT_S, max_reply_bytes=1)
    with pytest.raises(httpx2.ConnectTimeout):
        client.get(server.url.replace("http:", "https:"))
    client.close()


def test_the_phase_that_took_too_long_is_named(unread: socket.socket) -> None:
    url = f"https://127.0.0.1:{unread.getsockname()[1]}/v1"
    model = OpenAIModel("m", base_url=url, key=KEY, max_retries=0, timeout_s=TIME_LIMIT_S)
    with pytest.raises(ModelUnavailableError) as caught:
        model.reply(FINAL)
    model.close()
    assert str(caught.value) == (
        "The endpoint gave no reply in 1 attempt "
        "(the endpoint did not accept the connection within 0.2 s).\n"
        f"Where: model m at {url}\n"
        f"Do: Check that {url} is the right address, or try again later."
    )


# Bounds on size


def endless() -> Iterator[bytes]:
    yield HEAD + CHUNKED
    yield from itertools.repeat(b"10000\r\n" + b" " * 65_536 + b"\r\n")


@pytest.mark.parametrize(
    "pieces",
    [
        [HEAD + b"Content-Length: 200000000\r\n\r\n"],
        list(itertools.islice(endless(), MAX_REPLY_BYTES // 65_536 + 100)),
        [HEAD + b"\r\n", *[b" " * 65_536] * (MAX_REPLY_BYTES // 65_536 + 100)],
        [reply(zlib.compress(bytes(MAX_REPLY_BYTES + 1)), "Content-Encoding: deflate")],
    ],
    ids=["announced", "in chunks", "until it closes", "compressed"],
)
def test_a_reply_that_is_too_large_is_refused(server: RawServer, pieces: list[bytes]) -> None:
    server.reply_with(pieces)
    error = model_error(ModelReplyError, server)
    assert error.what == "The endpoint's reply is larger than 17 MB."
    assert error.where == f"model m at {server.url}/v1"
    assert len(server.requests) == 1  # The request is not retried.


def test_a_reply_that_is_compressed_twice_is_refused_because_its_work_has_no_bound(
    server: RawServer,
) -> None:
    twice = gzip.compress(gzip.compress(EMPTY_BLOCK[3:-2] * 1_000_000))
    server.reply_with([reply(twice, "Content-Encoding: gzip", "Content-Encoding: gzip")])
    what = model_error(ModelReplyError, server).what
    assert what == "The endpoint's reply is compressed more than once."


def test_a_reply_that_cannot_be_decompressed_is_refused(server: RawServer) -> None:
    server.reply_with([reply(b"no gzip", "Content-Encoding: gzip")])
    what = model_error(ModelReplyError, server).what
    assert what.startswith("The endpoint's reply cannot be decompressed (")


@pytest.mark.parametrize("compressed", [gzip.compress(BODY), zlib.compress(BODY)])
def test_a_compressed_reply_is_read(server: RawServer, compressed: bytes) -> None:
    encoding = "gzip" if compressed.startswith(b"\x1f\x8b") else "deflate"
    server.reply_with([reply(compressed, f"Content-Encoding: {encoding}")])
    model = model_at(server)
    assert model.reply(FINAL).text == "Answer: Vivaldi"
    model.close()


# Redirects


@pytest.fixture(scope="module")
def other_endpoint() -> Iterator[Endpoint]:
    with running_endpoint() as running:
        running.reply_with(completion("Answer: stolen"))
        yield running


def test_a_redirect_to_another_port_is_not_followed(
    server: RawServer, other_endpoint: Endpoint
) -> None:
    target = (
        other_endpoint.base_url.replace("http://", "http://anna:s3cret@")
        + "/chat/completions?key=s"
    )
    server.reply_with(
        [f"HTTP/1.1 307 Go\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()]
    )
    error = model_error(ModelAccessError, server)
    assert str(error).startswith(
        "The endpoint redirects to another address (status 307): "
        f"{other_endpoint.base_url}/chat/completions\nWhere: model m at {server.url}/v1\n"
    )
    assert other_endpoint.requests == []


@pytest.mark.parametrize(
    "target",
    ["//localhost:{port}/v1", "https://127.0.0.1:{port}/v1", "http://127.0.0.1:{port}0/v1"],
)
def test_another_scheme_or_host_is_not_followed_either(server: RawServer, target: str) -> None:
    location = target.format(port=server.port)
    server.reply_with(
        [f"HTTP/1.1 307 Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()]
    )
    model_error(ModelAccessError, server)
    assert len(server.requests) == 1


def test_a_redirect_within_the_endpoint_is_followed(other_endpoint: Endpoint) -> None:
    other_endpoint.reply_with(
        Answer(307, "", {"Location": "/v2/chat/completions"}), completion("Ada")
    )
    model = OpenAIModel("m", base_url=other_endpoint.base_url, key=KEY, max_retries=0)
    assert model.reply(FINAL).text == "Ada"
    assert other_endpoint.paths == ["/v1/chat/completions", "/v2/chat/completions"]
    assert other_endpoint.keys == [f"Bearer {KEY}"] * 2
    assert other_endpoint.requests[0] == other_endpoint.requests[1]
    model.close()


def test_redirects_in_a_circle_end(other_endpoint: Endpoint) -> None:
    other_endpoint.reply_with(Answer(308, "", {"Location": "/v1/chat/completions"}))
    model = OpenAIModel("m", base_url=other_endpoint.base_url, key=KEY, max_retries=0)
    with pytest.raises(ModelUnavailableError, match="redirected 5 times"):
        model.reply(FINAL)
    assert len(other_endpoint.requests) == 5
    model.close()


# Proxies


@pytest.mark.parametrize(
    ("login", "sent"),
    [("anna:s3cret", "YW5uYTpzM2NyZXQ="), ("anna:%D0%BF%D0%B0ss", "YW5uYTrQv9Cwc3M=")],
)
def test_a_proxy_of_the_environment_is_used_and_its_password_stays_with_it(
    server: RawServer, monkeypatch: pytest.MonkeyPatch, login: str, sent: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost")
    monkeypatch.setenv("HTTP_PROXY", server.url.replace("http://", f"http://{login}@"))
    monkeypatch.setenv("http_proxy", server.url.replace("http://", f"http://{login}@"))
    server.reply_with([reply(BODY)])
    model = OpenAIModel("m", base_url="http://model.invalid/v1", key=KEY, max_retries=0)
    assert model.reply(FINAL).text == "Answer: Vivaldi"
    model.close()
    head = server.requests[0].decode()
    assert head.startswith("POST http://model.invalid/v1/chat/completions HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {sent}\r\n" in head


@pytest.mark.parametrize("proxy", ["socks5://anna:s3cret@h:1", "http://anna:s3cret@h:port"])
def test_another_kind_of_proxy_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    model = OpenAIModel("m", base_url="https://model.invalid/v1", key=KEY, max_retries=0)
    with pytest.raises(ConfigError) as caught:
        model.reply(FINAL)
    assert str(caught.value).startswith("A proxy that the environment names cannot be used.\n")
    model.close()


# Encodings


CHARSETS = ["utf-16", "utf-32", "hex", "undefined", "idna", "punycode", "rot13", "utf-7", "none"]


@pytest.mark.parametrize("charset", CHARSETS)
def test_a_reply_is_read_as_utf_8_whatever_encoding_it_names(
    server: RawServer, charset: str
) -> None:
    named = HEAD.replace(b"/json", f"/json; charset={charset}".encode())
    server.reply_with([named + b"\r\n" + BODY.replace(b"Vivaldi", "Dvořák".encode())])
    model = model_at(server)
    assert model.reply(FINAL).text == "Answer: Dvořák"
    model.close()
    server.reply_with([named + b"\r\n" + BODY.decode().encode("utf-16")])
    what = model_error(ModelReplyError, server).what
    assert what == "The endpoint's reply is not in UTF-8."


def test_a_reply_in_latin_1_that_says_so_is_read(server: RawServer) -> None:
    named = HEAD.replace(b"/json", b"/json; charset=ISO-8859-1")
    server.reply_with([named + b"\r\n" + BODY.replace(b"Vivaldi", "Fauré".encode("latin-1"))])
    model = model_at(server)
    assert model.reply(FINAL).text == "Answer: Fauré"
    model.close()


# Certificates


def test_a_certificate_that_is_not_trusted_names_the_variable_of_authorities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", certificate]
    subprocess.run([*made, *files], check=True, capture_output=True)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with unruly(certificate, key) as strange:
        model = OpenAIModel("m", base_url=f"{strange.url}/v1", key=KEY, max_retries=5)
        with pytest.raises(ModelAccessError) as caught:
            model.reply(FINAL)
        model.close()
        assert caught.value.what.startswith("The certificate of the endpoint is not trusted: [SSL:")
        assert caught.value.do.endswith("SSL_CERT_FILE=FILE.")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        strange.reply_with(UnrulyAnswer(completion("Ada").body))
        model = OpenAIModel("m", base_url=f"{strange.url}/v1", key=KEY, max_retries=0)
        assert model.reply(FINAL).text == "Ada"
        model.close()


def test_certificates_that_cannot_be_read_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match="certificates that the environment names"):
        BoundedClient(timeout_s=1, max_reply_bytes=1)


def test_clients_read_the_authorities_once(monkeypatch: pytest.MonkeyPatch) -> None:
    BoundedClient(timeout_s=1, max_reply_bytes=1).close()
    monkeypatch.setattr(httpx2, "create_ssl_context", lambda: pytest.fail("read again"))
    BoundedClient(timeout_s=1, max_reply_bytes=1).close()
