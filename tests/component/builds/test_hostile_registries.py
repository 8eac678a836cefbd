"""Registries that mean no good: nothing they answer is believed, none of it fills the disk, and no build waits for ever."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fastness.builds.errors import BuildFailed, TransferFailed
from fastness.builds.live import transfers
from fastness.builds.live.layout import Made, Part, blob_path
from fastness.builds.live.transfers import Way
from fastness.formats import json, oci
from fastness.machineconfig.live.registry_session import Refused, Session
from fastness.machineconfig.streams.access import Place, RegistryAccess
from tests.component.builds.hostile_registry import IMAGE, INDEX, Answer, HostileRegistry, hostile_registry
from tests.unit.machineconfig.render.registries.build import image, settings


@pytest.fixture
def registry() -> Iterator[HostileRegistry]:
    """One that knows nothing yet."""
    with hostile_registry() as started:
        yield started


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Where a base is pulled to."""
    blob_path(tmp_path, "sha256:x").parent.mkdir(parents=True)
    return tmp_path


def way(registry: HostileRegistry, name: str) -> Way:
    return Way.to_read(RegistryAccess(settings(image(insecure=[registry.address])), b""), name)


async def refused(registry: HostileRegistry, name: str, base: Path) -> str:
    """Why an image is not pulled."""
    with pytest.raises(TransferFailed) as failure:
        await transfers.pull(way(registry, name), base)
    assert not failure.value.absent
    assert not (base / "index.json").exists()
    return str(failure.value)


async def test_an_image_is_pulled_as_it_is(registry: HostileRegistry, base: Path) -> None:
    await transfers.pull(way(registry, registry.image(b"layer")), base)
    assert blob_path(base, oci.digest_of(b"layer")).read_bytes() == b"layer"


async def test_a_list_that_names_a_list_is_not_followed(registry: HostileRegistry, base: Path) -> None:
    inner = registry.manifest({"mediaType": INDEX, "manifests": []})
    entry = {"digest": inner.partition("@")[2], "size": 1, "platform": {"os": "linux", "architecture": "amd64"}}
    outer = registry.manifest({"mediaType": INDEX, "manifests": [entry]})
    assert "a list of lists" in await refused(registry, outer, base)
    assert len(registry.asked) == 2


@pytest.mark.parametrize("change", [{"manifests": []}, {"mediaType": INDEX}, {"mediaType": 7}])
async def test_what_programs_would_read_differently_is_no_image(
    registry: HostileRegistry, base: Path, change: dict[str, object]
) -> None:
    document = {"mediaType": IMAGE, "config": registry.blob(b"{}"), "layers": [registry.blob(b"layer")], **change}
    assert "this is" in await refused(registry, registry.manifest(document), base)


async def test_a_configuration_that_is_none_is_a_reason_and_no_accident(registry: HostileRegistry, base: Path) -> None:
    assert "is not a JSON object" in await refused(registry, registry.image(b"layer", config=b"[1]"), base)


@pytest.mark.parametrize("body", [b"other", b"layer and more", b"", b"layeR"])
async def test_a_part_that_is_another_is_not_taken(registry: HostileRegistry, base: Path, body: bytes) -> None:
    name = registry.image(b"layer")
    registry.answers["GET", f"blobs/{oci.digest_of(b'layer')}"] = Answer(body=body)
    assert "it answered with" in await refused(registry, name, base)


async def test_what_is_packed_on_its_way_is_not_unpacked(registry: HostileRegistry, base: Path) -> None:
    """Three times packed, a few kilobytes are a gigabyte in memory before anybody counts."""
    name = registry.image(b"layer")
    bomb = b"\0" * 50_000_000
    for _ in range(3):
        bomb = gzip.compress(bomb)
    answer = Answer(body=bomb, headers={"content-encoding": "gzip, gzip, gzip"})
    registry.answers["GET", f"blobs/{oci.digest_of(b'{}')}"] = answer
    assert "it answered with something else" in await refused(registry, name, base)


async def test_a_registry_that_never_comes_to_an_end_is_left(
    registry: HostileRegistry, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "MOST_SECONDS", 0.5)
    name = registry.image(b"l" * 1_000_000)
    over = threading.Event()
    drips = lambda: b"" if over.wait(0.05) else b"l"  # noqa: E731 - one byte after the other
    registry.answers["GET", f"blobs/{oci.digest_of(b'l' * 1_000_000)}"] = Answer(drips=drips)
    try:
        assert "was not done within" in await refused(registry, name, base)
    finally:
        over.set()


async def test_a_pull_ends_before_it_fills_the_disk(registry: HostileRegistry, base: Path) -> None:
    name = registry.image(b"l" * 5_000_000)
    looks = iter((None, None, BuildFailed("little is left on the disk")))

    def look() -> None:
        if (problem := next(looks)) is not None:
            raise problem

    with pytest.raises(BuildFailed, match="little is left"):
        await transfers.pull(way(registry, name), base, look=look)
    assert blob_path(base, oci.digest_of(b"l" * 5_000_000)).stat().st_size < 5_000_000


@pytest.mark.parametrize("challenge", [
    'Bearer realm="http://h:port",service="x"', 'Bearer realm="http://127.0.0.1:99999999/",service="x"',
    'Bearer realm="http://a..b/"', "Negotiate", "",
])  # fmt: skip
async def test_a_server_of_tokens_that_is_none_is_a_reason_and_no_accident(
    registry: HostileRegistry, base: Path, challenge: str
) -> None:
    name = registry.image(b"layer")
    answer = Answer(401, headers={"www-authenticate": challenge})
    registry.answers = {("GET", path): answer for _, path in registry.answers}
    await refused(registry, name, base)


@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:99999999/", "http://a..b/", "http://h:port/", "gopher://h/", "/again"]
)
async def test_a_part_that_is_said_to_be_nowhere_is_a_reason_and_no_accident(
    registry: HostileRegistry, base: Path, place: str
) -> None:
    name = registry.image(b"layer")
    registry.answers["GET", f"blobs/{oci.digest_of(b'layer')}"] = Answer(307, headers={"location": place})
    registry.answers["GET", "/again"] = Answer(307, headers={"location": "/again"})
    await refused(registry, name, base)
    assert len(registry.asked) < 10


async def test_more_than_a_part_has_is_not_read_to_its_end(registry: HostileRegistry, base: Path) -> None:
    name = registry.image(b"layer")
    pieces = iter([b"l" * 65536] * 2000)
    registry.answers["GET", f"blobs/{oci.digest_of(b'layer')}"] = Answer(drips=lambda: next(pieces, b""))
    assert "more than the 5 bytes" in await refused(registry, name, base)
    assert next(pieces, None) is not None


async def test_a_password_goes_to_no_server_of_tokens_without_tls() -> None:
    """Of a registry that speaks TLS: anybody on the way would read it."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(401, headers={"www-authenticate": 'Bearer realm="http://tokens.example/t",service="x"'})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        place = Place(oci.reference(f"registry.example/os@sha256:{'a' * 64}"), False, ("robot", "password"))
        with pytest.raises(Refused, match="no server of tokens that speaks TLS"):
            await Session(http, place).exists()
    assert [request.url.host for request in requests] == ["registry.example"]
    assert not any("authorization" in request.headers for request in requests)


@pytest.mark.parametrize("body", [b'{"token": 7}', b'{"token": "a\\nb"}', b"[]", b"{}", b'{"token": "\xc3\xbc"}'])
async def test_a_token_that_is_none_is_not_sent(registry: HostileRegistry, base: Path, body: bytes) -> None:
    name = registry.image(b"layer")
    challenge = {"www-authenticate": f'Bearer realm="http://{registry.address}/token",service="x"'}
    registry.answers = {("GET", path): Answer(401, headers=challenge) for _, path in registry.answers}
    registry.answers["GET", "/token"] = Answer(body=body)
    assert "its server of tokens gave none" in await refused(registry, name, base)


@pytest.mark.parametrize(
    ("challenge", "answer", "reason"),
    [
        ("Bearer", Answer(403, b'{"token": "good"}'), "its server of tokens answered 403"),
        ("Basic", Answer(404), "it wants credentials, and the pull secret has none for it"),
    ],
)
async def test_who_may_not_pull_hears_who_said_so(
    registry: HostileRegistry, base: Path, challenge: str, answer: Answer, reason: str
) -> None:
    name = registry.image(b"layer")
    asks = {"www-authenticate": f'{challenge} realm="http://{registry.address}/token",service="x"'}
    registry.answers = {("GET", path): Answer(401, headers=asks) for _, path in registry.answers}
    registry.answers["GET", "/token"] = answer
    assert reason in await refused(registry, name, base)


async def test_a_manifest_without_end_is_not_read_to_its_end(registry: HostileRegistry, base: Path) -> None:
    name = registry.manifest(b"{" + b" " * oci.MAX_MANIFEST + b"}")
    assert f"it answered with more than {oci.MAX_MANIFEST} bytes" in await refused(registry, name, base)


# ------------------------------------------------------------ pushing


def made(base: Path) -> Made:
    path = blob_path(base, oci.digest_of(b"layer"))
    path.write_bytes(b"layer")
    part = oci.Descriptor(oci.digest_of(b"layer"), 5)
    return Made(json.canonical({"layers": []}), (Part(part, path),))


@pytest.mark.parametrize(("location", "reason"), [
    ("http://h:port/", "a place that is none"), ("http://127.0.0.2:1/take", "sends uploads on to 127.0.0.2"),
    ("https:///x", "sends uploads on"), ("\x01", "was not pushed"),
])  # fmt: skip
async def test_an_upload_is_sent_nowhere_else(
    registry: HostileRegistry, base: Path, location: str, reason: str
) -> None:
    registry.answers["POST", "blobs/uploads/"] = Answer(202, headers={"location": location})
    with pytest.raises(TransferFailed, match=reason) as failure:
        await transfers.push(way(registry, f"{registry.address}/os/worker:1"), made(base))
    assert failure.value.pushing
    assert not any(method == "PUT" for method, path in registry.asked if path.startswith("/v2/os/worker/manifests"))


@pytest.mark.parametrize("full", [("PUT", "/take"), ("PUT", "manifests/1")])
async def test_a_registry_that_is_full_is_named_and_nothing_is_pushed(
    registry: HostileRegistry, base: Path, full: tuple[str, str]
) -> None:
    registry.answers |= {
        ("POST", "blobs/uploads/"): Answer(202, headers={"location": f"http://{registry.address}/take"}),
        ("PUT", "/take"): Answer(201),
        ("PUT", "manifests/1"): Answer(201),
        full: Answer(507),
    }
    with pytest.raises(TransferFailed, match=r"was not pushed: .*it answered 507") as failure:
        await transfers.push(way(registry, f"{registry.address}/os/worker:1"), made(base))
    assert failure.value.pushing
    assert not failure.value.absent


async def test_a_registry_that_cannot_say_what_it_has_is_given_nothing(registry: HostileRegistry, base: Path) -> None:
    registry.answers["HEAD", f"blobs/{oci.digest_of(b'layer')}"] = Answer(503)
    with pytest.raises(TransferFailed, match="it answered 503"):
        await transfers.push(way(registry, f"{registry.address}/os/worker:1"), made(base))
    assert [method for method, _ in registry.asked] == ["HEAD"]
