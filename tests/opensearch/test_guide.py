"""The operator's guide: its compose files, commands and requests do what it says."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
import ssl
import subprocess
import tomllib
import urllib.error
import urllib.request
import uuid
import zipfile
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from bench.nodes import OPENSEARCH_VERSION, class_path
from tests.support.cluster import LocalCluster
from tests.support.guides import GUIDES, ROOT, blocks_of, prose_of, run_console
from tests.support.opensearch_indexes import Site

FOLDER = ROOT / "opensearch"
COMPOSE_FILES = ("docker-compose.yml", "docker-compose.cluster.yml")
SECRETS = {"ARAG_SEARCH_PASSWORD": "one", "ARAG_BUILD_PASSWORD": "two", "ARAG_MCP_TOKEN": "three"}


def blocks(kind: str) -> list[str]:
    return [block.text for block in blocks_of("opensearch/README.md") if block.kind == kind]


# Compose


def compose(name: str) -> dict[str, Any]:
    """Read a compose file as Docker does: with variables, anchors and merges resolved."""

    def value(match: re.Match[str]) -> str:
        if match["operator"].endswith("?"):
            return SECRETS[match["name"]]
        return match["default"]

    text = (FOLDER / name).read_text(encoding="utf-8")
    pattern = r"(?<!\$)\$\{(?P<name>\w+)(?P<operator>:?[-?])(?P<default>[^}]*)\}"
    return cast("dict[str, Any]", yaml.safe_load(re.sub(pattern, value, text)))


def nodes_of(composed: dict[str, Any]) -> dict[str, Any]:
    services = composed["services"].items()
    return {name: service for name, service in services if name.startswith("opensearch")}


@pytest.mark.parametrize(
    "name", [*COMPOSE_FILES, "docker-compose.image.yml", "docker-compose.secret.yml"]
)
def test_a_compose_file_follows_the_specification(name: str) -> None:
    specification = pytest.importorskip(
        "compose_spec", reason="compose-spec is not installed: uv pip install compose-spec"
    )
    resolved = {key: part for key, part in compose(name).items() if not key.startswith("x-")}
    parsed = specification.PyCompose.from_yaml(yaml.safe_dump(resolved))
    assert set(parsed.service_names()) == set(resolved["services"])
    broken = resolved | {"services": {"a": {"image": "x", "healthchek": {}}}}
    with pytest.raises(ValueError, match="healthchek"):
        specification.PyCompose.from_yaml(yaml.safe_dump(broken))


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_a_compose_file_uses_only_volumes_and_files_that_exist(name: str) -> None:
    composed = compose(name)
    certificates = {"./certificates/ca.pem", "./certificates/node.pem",
                         "./certificates/node-key.pem"}  # fmt: skip
    sources: set[str] = set()
    for service in composed["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            sources.add(source)
            if source.startswith("./"):
                assert source in {*certificates, "./corpus"} or (FOLDER / source).is_file()
            else:
                assert source in composed["volumes"]
    assert set(composed["volumes"]) <= sources


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_nodes_run_the_tested_release_and_are_reached_from_this_machine(name: str) -> None:
    composed = compose(name)
    images = {service["image"] for service in composed["services"].values() if "image" in service}
    assert images == {f"opensearchproject/opensearch:{OPENSEARCH_VERSION}"}
    ports = [port for node in nodes_of(composed).values() for port in node["ports"]]
    assert all(re.fullmatch(r"127\.0\.0\.1:92\d\d:9200", port) for port in ports)
    assert len(ports) == len(set(ports)) == len(nodes_of(composed))


def test_the_nodes_of_a_cluster_differ_in_name_port_and_data_only() -> None:
    nodes = nodes_of(compose("docker-compose.cluster.yml"))
    names = sorted(nodes)
    assert names == ["opensearch-1", "opensearch-2", "opensearch-3"]
    descriptions: list[str] = []
    for number, name in enumerate(names, 1):
        node = nodes[name]
        settings = node["environment"]
        assert settings["node.name"] == name
        assert settings["discovery.seed_hosts"].split(",") == names
        assert settings["cluster.initial_cluster_manager_nodes"].split(",") == names
        assert node["ports"] == [f"127.0.0.1:{9199 + number}:9200"]
        assert node["volumes"][0] == f"data-{number}:/usr/share/opensearch/data"
        settings = {key: value for key, value in settings.items() if key != "node.name"}
        rest = {"environment": settings, "volumes": node["volumes"][1:], "ports": []}
        descriptions.append(json.dumps({**node, **rest}))
    assert len(set(descriptions)) == 1


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_the_services_of_arag_search_run_its_image_without_rights(name: str) -> None:
    base = compose("docker-compose.image.yml")["services"]["arag-search"]
    assert (base["read_only"], base["cap_drop"], base["tmpfs"]) == (True, ["ALL"], ["/tmp"])
    services = compose(name)["services"]
    for service in (services["load"], services["mcp"]):
        assert service["extends"] == {"file": "docker-compose.image.yml", "service": "arag-search"}
    assert services["load"]["profiles"] == ["load"]
    assert services["mcp"]["ports"] == ["127.0.0.1:8765:8765"]
    command = services["mcp"]["command"]
    assert command[command.index("--token-env") + 1] == "ARAG_MCP_TOKEN"
    location = command[1].replace("https://", "").replace("http://", "")
    assert location.rpartition("/")[0].split(",") == [
        f"{node}:9200" for node in nodes_of(compose(name))
    ]
    assert services["load"]["command"][0] == command[1]


def test_no_secret_and_no_cache_gets_into_the_image() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    for kept_out in (".env", "certificates", "corpus", "secrets"):
        assert f"opensearch/{kept_out}" in patterns
    included = {pattern[1:] for pattern in patterns if pattern.startswith("!")}
    assert all((ROOT / name).exists() for name in included)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"]} <= included


def test_the_image_imports_only_names_that_the_package_has() -> None:
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    imports = re.findall(r"from (arag_search[\w.]*) import ([\w, ]+);", text)
    assert len(imports) == 3
    for module, names in imports:
        for name in names.split(", "):
            exec(f"from {module} import {name}", {})


def test_the_image_runs_as_a_user_without_rights_and_stops_at_a_signal() -> None:
    text = (FOLDER / "Dockerfile").read_text("utf-8")
    final = text.rpartition("\nFROM ")[2]
    assert "\nUSER 1000:1000\n" in final
    assert '\nENTRYPOINT ["arag-search"]\n' in final  # no shell that would keep signals
    assert "ARG BASE=python:3.12-slim\n" in text
    copied = re.findall(r"^COPY .*?(?:--from=(\w+))", final, re.MULTILINE)
    assert copied == ["dependencies", "java", "code"]  # what changes often comes last


def test_passwords_are_required_and_are_written_in_no_file() -> None:
    text = (FOLDER / "docker-compose.cluster.yml").read_text(encoding="utf-8")
    users = yaml.safe_load((FOLDER / "security" / "internal_users.yml").read_text("utf-8"))
    assert users.pop("_meta")["type"] == "internalusers"
    for user, entry in users.items():
        variable = f"{user.upper()}_PASSWORD"
        assert entry["hash"] == f"${{envbc.{variable}}}"
        assert f"${{{variable}:?set it in .env}}" in text
    assert set(users) == {"arag_search", "arag_build"}


def test_each_user_has_one_role_and_no_role_reaches_beyond_its_indexes() -> None:
    roles = yaml.safe_load((FOLDER / "security" / "roles.yml").read_text("utf-8"))
    mapping = yaml.safe_load((FOLDER / "security" / "roles_mapping.yml").read_text("utf-8"))
    assert (roles.pop("_meta")["type"], mapping.pop("_meta")["type"]) == ("roles", "rolesmapping")
    assert {role: entry["users"] for role, entry in mapping.items()} == {
        "arag_search": ["arag_search"],
        "arag_build": ["arag_build"],
    }
    for role in roles.values():
        (permissions,) = role["index_permissions"]
        assert permissions["index_patterns"] == ["arag-*"]
    (searching,) = roles["arag_search"]["index_permissions"]
    actions = [*roles["arag_search"]["cluster_permissions"], *searching["allowed_actions"]]
    assert not [name for name in actions if "write" in name or name in ("*", "indices:*")]


@pytest.mark.usefixtures("opensearch_jars")
def test_every_action_that_a_role_allows_is_one_of_the_server() -> None:
    server = next(jar for jar in class_path() if Path(jar).name.startswith("opensearch-3"))
    with zipfile.ZipFile(server) as jar:
        classes = b"\n".join(jar.read(name) for name in jar.namelist() if "/action/" in name)
    server_actions = {
        name.decode() for name in re.findall(rb"(?:indices|cluster):[a-z_/]+", classes)
    }
    roles = yaml.safe_load((FOLDER / "security" / "roles.yml").read_text("utf-8"))
    del roles["_meta"]
    for role in roles.values():
        (permissions,) = role["index_permissions"]
        for action in [*role["cluster_permissions"], *permissions["allowed_actions"]]:
            assert fnmatch.filter(server_actions, action), action


# The guide


def test_the_table_of_what_was_run_names_tests_that_exist() -> None:
    guide = (FOLDER / "README.md").read_text("utf-8")
    (table,) = re.findall(r"^\| what \| run by \|\n\|[-|]+\|\n((?:\|.*\n)+)", guide, re.MULTILINE)
    ran = [line.split("|")[2].strip() for line in table.splitlines()]
    named = {cell.strip("`") for cell in ran if cell != "not run"}
    assert all((ROOT / name).is_file() for name in named)
    containers = {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/docker/test_*.py")}
    assert containers <= named


def test_no_other_place_in_a_guide_says_that_something_was_not_run() -> None:
    said = re.compile(
        r"\*\*not run\*\*|\b(?:was|were|been) (?:not|never) (?:run|tested|tried)\b", re.I
    )
    # Those of benches name the data sets that they leave out.
    for guide in (guide for guide in GUIDES if not guide.startswith("bench/")):
        rows_left_out = re.sub(r"^\|.*\|$", "", prose_of(guide), flags=re.MULTILINE)
        assert said.findall(rows_left_out) == [], guide


def test_the_commands_of_the_guide_run_on_a_node(
    opensearch: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arag_search").symlink_to(ROOT / "arag_search")
    monkeypatch.chdir(tmp_path)
    (block,) = (
        block for block in blocks_of("opensearch/README.md") if block.kind == "console on a node"
    )
    text = block.text.replace("http://127.0.0.1:9200/my-index", opensearch.address)
    assert text.count(opensearch.address) == 2
    run_console(dataclasses.replace(block, text=text))


@pytest.mark.server
def test_the_certificates_of_the_guide_are_trusted_for_the_names_of_the_nodes(
    tmp_path: Path,
) -> None:
    (commands,) = blocks("sh certificates")
    subprocess.run(["bash", "-e", "-c", commands], cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / "certificates"
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "node.pem", folder / "node-key.pem")
    server.load_verify_locations(folder / "ca.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    for name in ("opensearch-1", "opensearch-3", "localhost", "127.0.0.1"):
        assert handshake_subject(server, folder, name) == "arag-admin"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake_subject(server, folder, "elsewhere")
    assert (folder / "node-key.pem").stat().st_mode & 0o077 == 0


def handshake_subject(server: ssl.SSLContext, folder: Path, name: str) -> str:
    """Return the subject of the client, after a handshake of administrator and node in memory."""
    client = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client.load_cert_chain(folder / "admin.pem", folder / "admin-key.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    subject = dict(pair for part in theirs.getpeercert()["subject"] for pair in part)  # type: ignore[index]
    return str(subject["commonName"])


def call(url: str, method: str, path: str, body: str = "") -> Any:
    request = urllib.request.Request(
        url + path,
        data=body.encode() or None,
        headers={"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_the_requests_of_the_guide_do_what_they_say(own_node: LocalCluster) -> None:
    url = own_node.url
    name = f"arag-test-{uuid.uuid4().hex[:8]}"
    older, newer = (f"{name}-20260{number}01000000-0000000{number}" for number in (1, 2))
    for index in (older, newer, f"{older}.sentences", f"{newer}.sentences"):
        alias = {name + index.removeprefix(newer): {}} if index.startswith(newer) else {}
        call(url, "PUT", f"/{index}", json.dumps({"aliases": alias}))
    answers: dict[str, Any] = {}
    for block in blocks("http"):
        head, _, body = block.replace("arag-wiki", name).partition("\n")
        method, path = head.split()
        answers[head] = call(url, method, path, body)
        if path == "/_aliases":
            live = call(url, "GET", f"/{name},{name}.sentences/_alias")
            assert sorted(live) == [older, f"{older}.sentences"]
    (before,) = (answer for head, answer in answers.items() if head.endswith(".sentences/_alias"))
    assert sorted(before) == [newer, f"{newer}.sentences"]
    (snapshot,) = (
        answer["snapshot"]
        for head, answer in answers.items()
        if head.startswith("PUT /_snapshot") and "wait_for_completion" in head
    )
    assert (snapshot["state"], len(snapshot["indices"])) == ("SUCCESS", 4)
    (restored,) = (answer for head, answer in answers.items() if "_restore" in head)
    assert sorted(restored["snapshot"]["indices"]) == [newer, f"{newer}.sentences"]
    log = call(url, "GET", f"/{newer}/_settings")[newer]["settings"]["index"]["search"]
    assert log["slowlog"]["threshold"]["query"]["warn"] == "1s"
    assert len(answers) == len(blocks("http")) == 9


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"regexp": {"t": {"value": ".*a.{3}", "max_determinized_states": 2**31 - 1}}},
         "max_determinized_states cannot exceed"),
        ({"simple_query_string": {"query": "(" * 2000 + "a" + ")" * 2000}},
         "nests parentheses deeper than the limit"),
    ],
)  # fmt: skip
def test_the_release_refuses_the_queries_that_the_guide_warns_of(
    opensearch_url: str, query: dict[str, Any], reason: str
) -> None:
    index = f"/arag-test-{uuid.uuid4().hex}-guide"
    call(opensearch_url, "PUT", index)
    try:
        with pytest.raises(urllib.error.HTTPError) as caught:
            call(opensearch_url, "POST", f"{index}/_search", json.dumps({"query": query}))
        assert caught.value.code == 400
        assert reason in caught.value.read().decode()
        caught.value.close()
    finally:
        call(opensearch_url, "DELETE", index)
