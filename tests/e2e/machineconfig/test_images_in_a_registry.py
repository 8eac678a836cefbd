"""Labels and files of images, read from a real registry; and registries that answer something else."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fastness.machineconfig.live.registry import RegistryClient
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.streams.access import RegistryAccess
from tests.bed.images import digest
from tests.components import require_program
from tests.e2e.agent.test_container_images import LOGIN
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.realkube.cluster import free_ports
from tests.unit.machineconfig.render.registries.build import idms, image, settings

pytestmark = pytest.mark.processes
LABELS = {"io.openshift.os.streamclass": "rhel-10", "containers.bootc": "1"}
PATH = "release-manifests/image-references"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


def plain(*registries: str, credentials: bytes = b"", **mirrors: Any) -> RegistryAccess:
    """Registries that the Image of the cluster calls insecure: there is no TLS on loopback."""
    objects = [idms("a", {source: places}) for source, places in mirrors.get("mirrors", {}).items()]
    return RegistryAccess(settings(image(insecure=list(registries)), *objects), credentials)


async def test_labels_are_read_without_pulling(registry: LocalRegistry) -> None:
    made = registry.push("os/ten", "1", "x", labels=LABELS)
    name = f"{registry.address}/os/ten@{made}"
    assert await RegistryClient().labels(name, plain(registry.address)) == LABELS


async def test_a_tag_is_not_asked_for(registry: LocalRegistry) -> None:
    with pytest.raises(BadStreams, match="is no image by digest"):
        await RegistryClient().labels(f"{registry.address}/os/ten:1", plain(registry.address))


async def test_a_tag_means_the_digest_of_the_bytes_that_the_registry_has_now(registry: LocalRegistry) -> None:
    name, access = f"{registry.address}/os/moving:1", plain(registry.address)
    first = registry.push("os/moving", "1", "before")
    assert await RegistryClient().resolve(name, access) == f"{registry.address}/os/moving@{first}"
    second = registry.push("os/moving", "1", "after")
    assert await RegistryClient().resolve(name, access) == f"{registry.address}/os/moving@{second}" != first
    assert await RegistryClient().resolve(f"{name}@{first}", access) == f"{registry.address}/os/moving@{first}"
    with pytest.raises(BadStreams, match=r"os/moving:2 cannot be read: .* it answered 404"):
        await RegistryClient().resolve(f"{registry.address}/os/moving:2", access)


async def test_a_page_that_is_no_image_is_no_answer_to_what_a_tag_means() -> None:
    async with scripted() as liar:
        liar.answers["/v2/os/manifests/1"] = ("200 OK", {"docker-content-digest": f"sha256:{'a' * 64}"}, b"<html>")
        with pytest.raises(BadStreams, match="cannot be read"):
            await RegistryClient().resolve(f"{liar.address}/os:1", plain(liar.address))


async def test_an_image_without_labels_has_none(registry: LocalRegistry) -> None:
    name = f"{registry.address}/os/bare@{registry.push('os/bare', '1', 'x')}"
    assert await RegistryClient().labels(name, plain(registry.address)) == {}


async def test_a_file_of_a_release_is_read_out_of_its_layer(registry: LocalRegistry) -> None:
    text = json.dumps({"spec": {"tags": []}})
    name = f"{registry.address}/os/release@{registry.push('os/release', '1', text, PATH)}"
    assert await RegistryClient().file(name, PATH, plain(registry.address)) == text.encode()
    with pytest.raises(BadStreams, match="it has no file elsewhere"):
        await RegistryClient().file(name, "elsewhere", plain(registry.address))


async def test_a_mirror_is_asked_first_and_may_be_the_only_one(registry: LocalRegistry) -> None:
    made = registry.push("mirror/ten", "1", "x", labels=LABELS)
    access = plain(registry.address, mirrors={"quay.example/os": [f"{registry.address}/mirror"]})
    assert await RegistryClient().labels(f"quay.example/os/ten@{made}", access) == LABELS


async def test_an_image_that_is_not_there_is_named_with_everybody_who_was_asked(registry: LocalRegistry) -> None:
    (port,) = free_ports(1)
    access = plain(
        registry.address, f"127.0.0.1:{port}", mirrors={f"127.0.0.1:{port}/os": [f"{registry.address}/mirror"]}
    )
    with pytest.raises(BadStreams) as refused:
        await RegistryClient().labels(f"127.0.0.1:{port}/os/gone@sha256:{'0' * 64}", access)
    assert f"{registry.address}: it answered 404" in refused.value.message
    assert f"127.0.0.1:{port} cannot be asked" in refused.value.message


async def test_a_registry_that_nobody_called_insecure_is_asked_with_tls_alone_and_what_to_write_is_said(
    registry: LocalRegistry,
) -> None:
    made = registry.push("os/secure", "1", "x", labels=LABELS)
    with pytest.raises(BadStreams, match=r"answers without TLS: name it in registrySources\.insecureRegistries"):
        await RegistryClient().labels(f"{registry.address}/os/secure@{made}", RegistryAccess())


async def test_a_private_registry_is_shown_the_pull_secret(tmp_path_factory: pytest.TempPathFactory) -> None:
    user, password, line = LOGIN
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    storage = tmp_path_factory.mktemp("private")
    with running_registry(program, storage) as open_registry:
        made = open_registry.push("os/private", "1", "x", labels=LABELS)
    with running_registry(program, storage, line) as private:
        name = f"{private.address}/os/private@{made}"
        with pytest.raises(BadStreams, match="the pull secret has none for it"):
            await RegistryClient().labels(name, plain(private.address))
        wrong = {"auths": {private.address: {"username": user, "password": "guess"}}}
        with pytest.raises(BadStreams, match="it answered 401"):
            await RegistryClient().labels(name, plain(private.address, credentials=json.dumps(wrong).encode()))
        right = {"auths": {private.address: {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}}}
        assert (
            await RegistryClient().labels(name, plain(private.address, credentials=json.dumps(right).encode()))
            == LABELS
        )


class Scripted:
    """A registry that answers by the path of what it is asked, and remembers what it was shown."""

    def __init__(self) -> None:
        self.address = ""
        self.answers: dict[str, tuple[str, dict[str, str], bytes]] = {}
        self.shown: list[tuple[str, str]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1]
        lines = [line.partition(": ") for line in head.split("\r\n")[1:]]
        header = next((value for key, _, value in lines if key.lower() == "authorization"), "")
        self.shown.append((path.partition("?")[0], header))
        for start, (status, headers, body) in self.answers.items():
            if path.startswith(start) and not (status.startswith("401") and header.startswith("Bearer ")):
                text = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
                writer.write(f"HTTP/1.1 {status}\r\n{text}content-length: {len(body)}\r\n\r\n".encode() + body)
                break
        await writer.drain()
        writer.close()


@asynccontextmanager
async def scripted() -> AsyncIterator[Scripted]:
    registry = Scripted()
    server = await asyncio.start_server(registry.serve, "127.0.0.1", 0)
    async with server:
        registry.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield registry


CONFIG = json.dumps({"config": {"Labels": LABELS}}).encode()
MANIFEST = json.dumps({"config": {"digest": digest(CONFIG), "size": len(CONFIG)}, "layers": []}).encode()


async def test_a_token_is_fetched_where_the_registry_says_and_only_with_its_own_password() -> None:
    async with scripted() as registry:
        challenge = {"www-authenticate": f'Bearer realm="http://{registry.address}/token",service="s"'}
        registry.answers = {
            "/token": ("200 OK", {}, b'{"token": "ticket"}'),
            "/v2/os/a/manifests": ("401 Unauthorized", challenge, b""),
            "/v2/os/a/manifests/": ("200 OK", {}, MANIFEST),
            "/v2/os/a/blobs": ("200 OK", {}, CONFIG),
        }
        login = {"auths": {f"{registry.address}/os": {"username": "u", "password": "p"}}}
        access = plain(registry.address, credentials=json.dumps(login).encode())
        assert await RegistryClient().labels(f"{registry.address}/os/a@{digest(MANIFEST)}", access) == LABELS
        basic = "Basic " + base64.b64encode(b"u:p").decode()
        assert [word for path, word in registry.shown if path == "/token"] == [basic]
        assert {word for path, word in registry.shown if path != "/token"} == {"", "Bearer ticket"}


async def test_a_registry_with_tls_cannot_send_us_to_a_server_of_tokens_without() -> None:
    async with scripted() as registry:
        registry.answers = {
            "/v2/": ("401 Unauthorized", {"www-authenticate": 'Bearer realm="ftp://x.example/token"'}, b"")
        }
        with pytest.raises(BadStreams, match="no server of tokens that speaks TLS"):
            await RegistryClient().labels(f"{registry.address}/os/a@{digest(MANIFEST)}", plain(registry.address))


@pytest.mark.parametrize(
    ("manifest", "config", "words"),
    [
        (b"{}", CONFIG, "something else than sha256"),
        (MANIFEST, b"{}", "something else than sha256"),
        (b"x" * (5 * 1024 * 1024), CONFIG, "more than 4194304 bytes"),
    ],
)
async def test_a_registry_that_lies_is_not_believed(manifest: bytes, config: bytes, words: str) -> None:
    async with scripted() as registry:
        registry.answers = {
            "/v2/os/a/manifests": ("200 OK", {}, manifest),
            "/v2/os/a/blobs": ("200 OK", {}, config),
        }
        with pytest.raises(BadStreams, match=words):
            await RegistryClient().labels(f"{registry.address}/os/a@{digest(MANIFEST)}", plain(registry.address))


async def test_a_redirection_to_another_host_takes_no_password_along() -> None:
    async with scripted() as elsewhere, scripted() as registry:
        elsewhere.answers = {"/blob": ("200 OK", {}, CONFIG)}
        challenge = {"www-authenticate": f'Bearer realm="http://{registry.address}/token"'}
        registry.answers = {
            "/token": ("200 OK", {}, b'{"access_token": "ticket"}'),
            "/v2/os/a/manifests": ("401 Unauthorized", challenge, b""),
            "/v2/os/a/manifests/": ("200 OK", {}, MANIFEST),
            "/v2/os/a/blobs": ("307 Temporary Redirect", {"location": f"http://{elsewhere.address}/blob"}, b""),
        }
        name = f"{registry.address}/os/a@{digest(MANIFEST)}"
        assert await RegistryClient().labels(name, plain(registry.address)) == LABELS
        assert elsewhere.shown == [("/blob", "")]
