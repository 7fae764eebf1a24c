"""TLS with a server: certificates that are trusted and shown, and the errors if they are not."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from arag_search.engines.opensearch import hosts
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.faults import fault_of_tls
from arag_search.errors import AccessError, ArgumentError, EngineError, IndexNotFoundError
from arag_search.search.opening import open_index
from tests.support.commands import Command
from tests.support.unruly_server import Answer, UnrulyServer, unruly, version

QUICK = ConnectionOptions(attempt_timeout_s=0.3, request_budget_s=1.5, opening_budget_s=0.5)
FILES = ("OPENSEARCH_CA_CERTS", "OPENSEARCH_CLIENT_CERT", "OPENSEARCH_CLIENT_KEY")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that no authority signed, and its key."""

    file: Path
    key: Path


@pytest.fixture(name="ours", scope="module")
def certificate_of_the_server(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate(*self_signed(tmp_path_factory.mktemp("server")))


@pytest.fixture(name="theirs", scope="module")
def certificate_of_the_client(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate(*self_signed(tmp_path_factory.mktemp("client")))


@pytest.fixture(name="strict")
def server_that_asks_for_a_certificate(
    ours: Certificate, theirs: Certificate
) -> Iterator[UnrulyServer]:
    with unruly(ours.file, ours.key, theirs.file) as server:
        server.reply_with(version())
        yield server


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FILES:
        monkeypatch.setenv(name, "")


def test_a_certificate_without_a_known_authority_is_not_trusted(ours: Certificate) -> None:
    with unruly(ours.file, ours.key) as server:
        server.reply_with(version())
        address = parse_address(f"{server.url}/wiki")
        with pytest.raises(AccessError) as caught:
            Client.connect(address, QUICK)
        assert caught.value.what.startswith("The certificate of the server is not trusted: ")
        assert "CERTIFICATE_VERIFY_FAILED" in caught.value.what
        assert caught.value.do == "Name the file of its authority: OPENSEARCH_CA_CERTS=FILE."
        Client.connect(address, ConnectionOptions(ca_certs=str(ours.file))).close()


def test_a_certificate_of_another_host_or_authority_is_named_as_that(
    ours: Certificate, theirs: Certificate
) -> None:
    with unruly(ours.file, ours.key) as server:
        address = parse_address(f"{server.url.replace('127.0.0.1', 'localhost')}/wiki")
        with pytest.raises(AccessError, match=r"is for another host: .*'localhost'") as caught:
            Client.connect(address, replace(QUICK, ca_certs=str(ours.file)))
        assert caught.value.do == "Write a host that it names in the address, or renew it."
        with pytest.raises(AccessError, match="The certificate of the server is not trusted") as of:
            Client.connect(address, replace(QUICK, ca_certs=str(theirs.file)))
        assert of.value.do == f"Put its authority into {theirs.file}."


def test_http_to_a_server_that_speaks_tls_is_told_so(ours: Certificate) -> None:
    with unruly(ours.file, ours.key) as server, pytest.raises(EngineError) as caught:
        Client.connect(parse_address(f"{server.url.replace('https', 'http')}/wiki"), QUICK)
    assert caught.value.do.endswith("If the server speaks TLS, write https:// in the address.")


def test_a_file_of_authorities_that_changes_is_read_again(
    ours: Certificate, theirs: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "LOOK_EVERY_S", 0.0)
    file = tmp_path / "ca.pem"
    file.write_bytes(theirs.file.read_bytes())
    with unruly(ours.file, ours.key) as server:
        server.reply_with(version())
        client = Client(parse_address(f"{server.url}/wiki"), replace(QUICK, ca_certs=str(file)))
        with pytest.raises(AccessError):
            client.version()
        file.write_bytes(ours.file.read_bytes())
        assert client.version() == "3.9.0"
        client.close()


def test_tls_with_a_server_that_does_not_speak_it_is_reported() -> None:
    with unruly() as server, pytest.raises(EngineError) as caught:
        Client.connect(parse_address(f"{server.url.replace('http', 'https')}/wiki"), QUICK)
    assert caught.value.what == "The server does not speak TLS."
    assert caught.value.do == "Write http:// in the address."


# Certificates of clients


def test_a_server_that_asks_for_a_certificate_gets_one(
    strict: UnrulyServer, ours: Certificate, theirs: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = parse_address(f"{strict.url}/wiki")
    files = str(ours.file), str(theirs.file), str(theirs.key)
    Client.connect(address, ConnectionOptions.from_environment(*files)).close()
    for name, file in zip(FILES, files, strict=True):
        monkeypatch.setenv(name, file)
    again = Client.connect(address, ConnectionOptions.from_environment())
    again.version()  # connecting asks a known server nothing
    again.close()
    assert len(strict.requests) == 2


def test_a_missing_client_certificate_is_reported_with_the_option_to_set(
    strict: UnrulyServer, ours: Certificate
) -> None:
    """Check the advice, whether the server reports the cause or just hangs up."""
    with pytest.raises(EngineError) as caught:
        Client.connect(parse_address(f"{strict.url}/wiki"), replace(QUICK, ca_certs=str(ours.file)))
    assert "OPENSEARCH_CLIENT_CERT=FILE" in caught.value.do


@pytest.mark.parametrize(
    ("reason", "retryable", "what"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] x", False, "The server does not speak TLS."),
        ("certificate verify failed: CERTIFICATE_VERIFY_FAILED", False,
         "The certificate of the server is not trusted: "
         "certificate verify failed: CERTIFICATE_VERIFY_FAILED"),
        ("CERTIFICATE_VERIFY_FAILED: certificate has expired", False,
         "The certificate of the server has expired: "
         "CERTIFICATE_VERIFY_FAILED: certificate has expired"),
        ("CERTIFICATE_VERIFY_FAILED: certificate is not yet valid", False,
         "The certificate of the server is not valid yet: "
         "CERTIFICATE_VERIFY_FAILED: certificate is not yet valid"),
        ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] x", False,
         "The server does not accept the certificate of the client: "
         "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] x"),
        ("[SSL: TLSV1_ALERT_UNKNOWN_CA] x", False,
         "The server does not accept the certificate of the client: "
         "[SSL: TLSV1_ALERT_UNKNOWN_CA] x"),
        ("EOF occurred in violation of protocol", True,
         "No connection: EOF occurred in violation of protocol"),
        ("[SSL: TLSV1_ALERT_INTERNAL_ERROR] x", True,
         "No connection: [SSL: TLSV1_ALERT_INTERNAL_ERROR] x"),
    ],
)  # fmt: skip
def test_a_dying_node_is_distinguished_from_a_refused_certificate(
    reason: str, retryable: bool, what: str
) -> None:
    fault = fault_of_tls(reason, "https://h:1", shown=True)
    assert (fault.retryable, fault.error.what) == (retryable, what)


def test_python_takes_the_files_as_arguments(
    strict: UnrulyServer, ours: Certificate, theirs: Certificate
) -> None:
    strict.reply_with(version(), Answer({}))
    with pytest.raises(IndexNotFoundError):
        open_index(f"{strict.url}/wiki", ca_certs=str(ours.file), client_cert=str(theirs.file),
                   client_key=str(theirs.key))  # fmt: skip


@pytest.mark.parametrize("command", ["info {}", "search {} opera", "read {} a.1", "ask {} who"])
def test_commands_take_the_files_from_variables(
    command: str,
    strict: UnrulyServer,
    ours: Certificate,
    theirs: Certificate,
    arag: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strict.reply_with(version(), Answer({}))
    location = f"{strict.url}/wiki"
    monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(ours.file))
    monkeypatch.setenv("OPENSEARCH_CLIENT_CERT", str(theirs.file))
    monkeypatch.setenv("OPENSEARCH_CLIENT_KEY", str(theirs.key))
    result = arag(*command.format(location).split())
    assert result.code == {"info": 3, "ask": 1}.get(command.partition(" ")[0], 2)
    assert f"There is no such index on the server.\nWhere: {location}" in result.err


def test_building_takes_the_files_from_variables(
    ours: Certificate, arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unruly(ours.file, ours.key) as server:
        server.reply_with(version("2.19.1"))
        arguments = ["index", str(Path(__file__)), "--format", "passages", "--to"]
        location = f"{server.url}/wiki"
        assert "The certificate of the server is not trusted" in arag(*arguments, location).err
        monkeypatch.setenv("OPENSEARCH_CA_CERTS", str(ours.file))
        result = arag(*arguments, location)
        assert "The server is OpenSearch 2.19.1." in result.err


# Files that cannot be used


def test_a_missing_file_of_authorities_is_reported() -> None:
    with pytest.raises(ArgumentError) as caught:
        ConnectionOptions.from_environment("/nowhere/ca.pem")
    assert caught.value.where == "/nowhere/ca.pem"


def test_a_key_without_its_certificate_is_refused(ours: Certificate) -> None:
    with pytest.raises(ArgumentError) as caught:
        ConnectionOptions.from_environment(None, None, str(ours.key))
    assert str(caught.value) == (
        f"There is a key without its certificate.\nWhere: {ours.key}\n"
        "Do: Name the certificate too: OPENSEARCH_CLIENT_CERT=FILE."
    )


@pytest.mark.parametrize("defect", ["text", "mismatch", "locked"])
def test_files_that_cannot_be_used_are_reported_before_connecting(
    defect: str, ours: Certificate, theirs: Certificate, tmp_path: Path
) -> None:
    text, locked = tmp_path / "text", tmp_path / "locked.pem"
    text.write_text("hello")
    openssl("ec", "-in", ours.key, "-aes256", "-passout", "pass:abcd", "-out", locked)
    files = {
        "text": (str(text), None, None),
        "mismatch": (None, str(ours.file), str(theirs.key)),
        "locked": (None, str(ours.file), str(locked)),
    }[defect]
    with pytest.raises(ArgumentError) as caught:
        ConnectionOptions.from_environment(*files)
    assert caught.value.what.startswith("The file for the TLS connection cannot be used: ")
    assert caught.value.where == " and ".join(filter(None, files))
    assert caught.value.do == "Name another file."


def openssl(*arguments: object) -> None:
    """Run openssl, or skip the test if there is none."""
    try:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl on this machine")


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Create a certificate for 127.0.0.1 that no authority signed, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
    )  # fmt: skip
    return certificate, key
