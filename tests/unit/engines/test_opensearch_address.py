"""Addresses of indexes on a server: their parts, and the errors for wrong ones."""

import pytest

from arag_search.engines.opensearch.address import Address, is_address, parse_address
from arag_search.errors import ArgumentError

FORM = "Write http(s)://HOST:PORT[,HOST:PORT...]/[PREFIX/]NAME."
ONCE = "Name http:// or https:// once"
NAME = "Choose such a name."


@pytest.mark.parametrize(
    ("location", "address"),
    [
        ("http://localhost:9200/wiki", Address(("http://localhost:9200",), "", "wiki")),
        ("https://h1:9200,h2:9201/wiki",
         Address(("https://h1:9200", "https://h2:9201"), "", "wiki")),
        ("http://[::1]:9200/wiki", Address(("http://[::1]:9200",), "", "wiki")),
        ("https://proxy.example:443/search/v2/wiki",
         Address(("https://proxy.example:443",), "/search/v2", "wiki")),
        ("HTTP://Localhost:9200/wiki/", Address(("http://localhost:9200",), "", "wiki")),
        ("http://h:1,h:1/a-b.c_1", Address(("http://h:1",), "", "a-b.c_1")),
    ],
)  # fmt: skip
def test_an_address_is_parsed_into_hosts_prefix_and_name(location: str, address: Address) -> None:
    assert parse_address(location) == address


@pytest.mark.parametrize(
    "text", ["http://h1:9200,h2:9200/wiki", "https://h:443/search/v2/wiki", "http://[::1]:9200/w"]
)
def test_an_address_prints_as_it_was_written(text: str) -> None:
    assert str(parse_address(text)) == text


def test_the_server_is_the_address_without_the_name() -> None:
    assert parse_address("http://h1:1,h2:2/p/wiki").server == "http://h1:1,h2:2/p"


def test_the_scheme_decides_whether_connections_use_tls() -> None:
    assert parse_address("https://h:1/a").is_encrypted
    assert not parse_address("http://h:1/a").is_encrypted


def test_a_folder_is_no_address() -> None:
    assert not is_address("my-index")
    assert not is_address("httpd/index")
    assert is_address("HTTPS://h:1/a")


def test_a_wrong_address_is_rejected_in_four_parts() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_address("http://localhost/wiki")
    assert str(caught.value) == (
        'The address names the host "localhost".\nWhere: http://localhost/wiki\n'
        "Allowed: HOST:PORT, several of them separated by commas\n"
        "Do: Add the port: localhost:9200 for a node, localhost:80 for a proxy or a service."
    )


@pytest.mark.parametrize(
    ("location", "what", "do"),
    [
        ("http://h1:9200,http://h2:9200/wiki", 'The address names the host "http:".', ONCE),
        ("http://h1:99999/wiki", 'The address names the host "h1:99999".', FORM),
        ("http://h1:9200", "The address names no index.", "Add the name of the index"),
        ("http://h1:9200/Wiki", 'The name of the index is "Wiki".', NAME),
        ("http://h1:9200/wiki.sentences", 'The name of the index is "wiki.sentences".', NAME),
        ("http://h1:9200/wiki.lock", 'The name of the index is "wiki.lock".', NAME),
        ("http://h1:9200/a,b", 'The name of the index is "a,b".', NAME),
        ("http://h1:9200/_all/wiki?x=/b", 'The prefix of the address is "_all/wiki?x=".', FORM),
        ("my-index", "The location is not an address.", ""),
    ],
)
def test_wrong_addresses_are_rejected(location: str, what: str, do: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_address(location)
    error = caught.value
    assert error.what.startswith(what)
    assert error.where == location
    assert error.allowed
    assert error.do.startswith(do)


@pytest.mark.parametrize(
    "location", ["https://anna:s3cret@h1:9200/wiki", "https://h1:9200,anna:s3cret@h2:9200/wiki"]
)
def test_a_password_in_an_address_is_rejected_and_not_repeated(location: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_address(location)
    assert "s3cret" not in str(caught.value)
    assert caught.value.what == "The address holds a user or a password."
    assert caught.value.do == "Set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD instead."
