"""The first boot of a virtual machine: it follows its user-data as Ignition would, and joins with what it was served."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from fastness.agent.host.states import File, Link
from fastness.app.embedded import PlaneOptions, running
from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.serving import document
from fastness.sim.first_boot import ACCEPT, BootFailure, fetch, lay_down
from tests.component.agent.directory_machine import UNIT, file, make_machine, rendered, unit
from tests.patience import PATIENCE

MACHINE_CONFIG = find("machineconfiguration.openshift.io", "v1", "machineconfigs").resource
NODE = find("", "v1", "nodes").resource
SECRET = find("", "v1", "secrets").resource
SERVED = {
    "ignition": {"version": "3.5.0"},
    "storage": {"files": [{"path": "/etc/a", "contents": {"source": "data:,x"}}]},
}
AGAIN = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def answer(body: Any, code: str = "200 OK") -> bytes:
    data = body if isinstance(body, bytes) else json.encode(body)
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (code.encode(), len(data), data)


class Door:
    """A server that answers from a list and keeps what it was asked."""

    def __init__(self, ca: str, port: int) -> None:
        self.ca = ca
        self.url = f"https://127.0.0.1:{port}/config/worker"
        self.requests: list[bytes] = []

    def user_data(self, source: str = "", ca: str | None = None) -> bytes:
        headers = [{"name": "Authorization", "value": "Bearer fst_x"}]
        trusted = [{"source": dataurl.encode((ca or self.ca).encode())}]
        merge = [{"source": source or self.url, "httpHeaders": headers}]
        head = {
            "version": "3.2.0",
            "config": {"merge": merge},
            "security": {"tls": {"certificateAuthorities": trusted}},
        }
        return json.encode({"ignition": head})


@asynccontextmanager
async def door(*answers: bytes) -> AsyncIterator[Door]:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(left.pop(0))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    opened = Door(authority.cert_pem.bytes().decode(), server.sockets[0].getsockname()[1])
    async with server:
        yield opened


class Patience:
    """Counts how often the machine waits, and gives up for it."""

    def __init__(self, most: int) -> None:
        self.waits = 0
        self._most = most

    async def __call__(self, attempt: int) -> None:
        assert attempt == self.waits
        self.waits += 1
        if self.waits > self._most:
            raise TimeoutError


async def test_the_pointer_is_followed_over_tls_with_its_headers_and_in_the_current_version() -> None:
    async with door(answer(SERVED)) as server:
        config = await fetch(server.user_data(), Patience(0))
    assert config["storage"]["files"][0]["path"] == "/etc/a"
    assert "config" not in config["ignition"]
    [request] = server.requests
    assert request.startswith(b"GET /config/worker HTTP/1.1\r\n")
    assert b"authorization: bearer fst_x" in request.lower()
    assert ACCEPT.encode() in request


async def test_a_server_that_asks_to_come_back_is_asked_again() -> None:
    patience = Patience(5)
    async with door(AGAIN, AGAIN, answer(SERVED)) as server:
        assert await fetch(server.user_data(), patience)
    assert patience.waits == 2


@pytest.mark.parametrize("code", ["401 Unauthorized", "403 Forbidden", "404 Not Found", "302 Found"])
async def test_any_other_answer_is_final(code: str) -> None:
    async with door(answer(b"", code)) as server:
        with pytest.raises(BootFailure, match=f"answered {code[:3]}"):
            await fetch(server.user_data(), Patience(0))


async def test_a_server_of_another_authority_never_gets_the_ticket() -> None:
    async with door(answer(SERVED)) as server:
        with pytest.raises(TimeoutError):
            await fetch(server.user_data(ca=trustme.CA().cert_pem.bytes().decode()), Patience(2))
    assert server.requests == []


@pytest.mark.parametrize(
    ("user_data", "says"),
    [
        (b"#cloud-config", "cannot be read"),
        (json.encode({"ignition": {"version": "9.9.9"}}), "cannot be read"),
        (Door("x", 1).user_data(), "no certificate"),
    ],
    ids=["no JSON", "no such version", "no certificate"],
)
async def test_user_data_that_leads_nowhere_is_said(user_data: bytes, says: str) -> None:
    with pytest.raises(BootFailure, match=says):
        await fetch(user_data, Patience(0))


async def test_a_machine_that_cannot_attest_says_so_instead_of_asking_anybody() -> None:
    async with door() as server:
        with pytest.raises(BootFailure, match="attest"):
            await fetch(server.user_data("http://127.0.0.1:22625/config/worker"), Patience(0))


async def test_a_machine_whose_image_carries_the_pointer_follows_nothing_of_its_user_data() -> None:
    """A config server of the host's, with the host's authority, beside a unit: all of it goes to the agent, unread."""
    taken: list[bytes] = []

    async def forward(user_data: bytes) -> bytes:
        taken.append(user_data)
        return json.encode({"ignition": {"version": "3.5.0"}, "storage": {"files": [{"path": "/etc/signed"}]}})

    async with door() as server:
        hostile = json.decode(server.user_data())
        hostile["systemd"] = {"units": [{"name": "evil.service"}]}
        document = await fetch(json.encode(hostile), Patience(0), forward)
        assert server.requests == []
    assert taken == [json.encode(hostile)]
    assert "systemd" not in document
    assert document["storage"]["files"][0]["path"] == "/etc/signed"


@pytest.mark.parametrize("body", [b"<html>", b'{"ignition":{}}', b"[]"], ids=["no JSON", "no version", "no object"])
async def test_what_is_no_config_is_final(body: bytes) -> None:
    async with door(answer(body)) as server:
        with pytest.raises(BootFailure, match="cannot be read"):
            await fetch(server.user_data(), Patience(0))


def test_everything_that_was_served_is_on_the_machine(tmp_path: Path) -> None:
    machine = make_machine(tmp_path)
    users = [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"], "passwordHash": "$6$x"}]
    config = rendered(
        "rendered-worker-1", files=[file("/etc/a", "x", 0o600)], users=users,
        units=[unit("u.service"), unit("m.service", None, None, mask=True)],
        osImageURL="quay.example/os@sha256:1", kernelArguments=["quiet"],
    )  # fmt: skip
    config["spec"]["config"]["storage"]["directories"] = [{"path": "/opt/d/e", "mode": 0o700}]
    config["spec"]["config"]["storage"]["links"] = [{"path": "/etc/l", "target": "a"}]
    lay_down(machine, json.decode(document(config, "3.5.0")))
    root = machine.host.root
    written = root.look("/etc/a")
    assert isinstance(written, File)
    assert (written.content, written.mode) == (b"x", 0o600)
    assert root.look("/etc/l") == Link("a")
    assert (machine.root / "opt/d/e").is_dir()
    assert root.look("/etc/systemd/system/m.service") == Link("/dev/null")
    assert machine.units.is_enabled("u.service") == "enabled"
    assert UNIT.encode() in root.look("/etc/systemd/system/u.service").content  # type: ignore[union-attr]
    assert b"core:$6$x:" in root.look("/etc/shadow").content  # type: ignore[union-attr]
    assert b"AAAA" in root.look("/home/core/.ssh/authorized_keys.d/ignition").content  # type: ignore[union-attr]
    booted = machine.system.booted()
    assert (booted.image, booted.arguments) == ("quay.example/os@sha256:1", ("quiet",))
    assert not (machine.root / names.ENCAPSULATED_FILE.lstrip("/")).exists()
    notes = json.decode((machine.root / names.NODE_ANNOTATIONS_FILE.lstrip("/")).read_bytes())
    assert notes[names.CURRENT_CONFIG] == "rendered-worker-1"


async def test_a_machine_joins_with_the_annotations_that_the_config_server_sent(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(PlaneOptions(state, machines=1, profile="containers")) as plane:
        node = await joined(plane.server.cluster)
        notes = annotations_of(node)
        backup = state / "machines/worker-0/root/etc/machine-config-daemon/node-annotation.json.bak"
        async with asyncio.timeout(PATIENCE):
            while True:  # the agent takes over what the first boot left
                if backup.exists():
                    break
                await asyncio.sleep(0.05)
        served = json.decode(backup.read_bytes())
        assert notes[names.FIRST_PIVOT_CONFIG] == served[names.CURRENT_CONFIG]
        content = state / "machines/worker-0/root/etc/mcs-machine-config-content.json"
        async with asyncio.timeout(PATIENCE):
            while True:  # a second copy of every secret, of no use once the agent has its own
                if not content.exists():
                    break
                await asyncio.sleep(0.05)
        secret = await plane.server.cluster.get(SECRET, "worker-user-data-managed", names.USER_DATA_NAMESPACE)
        assert plane.endpoints.config_server in base64.b64decode(secret["data"]["userData"]).decode()


async def test_nobody_on_a_machine_reads_what_its_config_keeps_for_root(tmp_path: Path) -> None:
    """Every file below the machine's directory, as a local user could open it, before and after an update."""
    machine = tmp_path / "state/machines/worker-0"
    async with running(PlaneOptions(tmp_path / "state", machines=1, profile="containers")) as plane:
        await joined(plane.server.cluster)
        for word in ("first-canary", "second-canary"):
            config = _secret_config(word)
            await plane.server.cluster.patch(
                MACHINE_CONFIG, "99-key", config, PatchType.APPLY, "", WriteOptions("tester")
            )
            async with asyncio.timeout(PATIENCE):
                while not _holds(machine / "root/etc/key", word):
                    assert not _public(machine, b"canary")
                    await asyncio.sleep(0.1)
        assert not _public(machine, b"canary")


def _secret_config(word: str) -> JsonObject:
    entry = {"path": "/etc/key", "mode": 0o600, "contents": {"source": f"data:,{word}"}}
    return {
        "apiVersion": names.API_VERSION, "kind": "MachineConfig",
        "metadata": {"name": "99-key", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [entry]}}},
    }  # fmt: skip


def _holds(path: Path, word: str) -> bool:
    return path.exists() and word in path.read_text()


def _public(directory: Path, word: bytes) -> list[Path]:
    """The files with a word in them that everybody may read, whatever the directories above allow."""
    readable = []
    for path in directory.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o004 and word in path.read_bytes():
                readable.append(path)
        except FileNotFoundError:
            continue  # gone between the look and the reading
    return readable


async def joined(cluster: Any) -> JsonObject:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                node: JsonObject = await cluster.get(NODE, "worker-0")
                return node
            except NotFound:
                await asyncio.sleep(0.05)
