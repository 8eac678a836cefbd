"""Where platforms put user-data: services on the loopback, directories in place of discs, and hosts that try more."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fastness.agent.host.errors import BadUserData, CommandFailed, UnknownPlatform, UserDataFailure
from fastness.agent.host.user_data import PLATFORMS, UserDataSource, drives, places_of, platform_of
from fastness.agent.host.user_data.drives import Drive, SerialDisk
from fastness.agent.host.user_data.files import FilePlace, fw_cfg, read_below
from fastness.agent.host.user_data.guestinfo import DATA, GuestInfo
from fastness.agent.host.user_data.metadata import SERVICE, Metadata, aws, azure, gcp, openstack
from fastness.protocol.user_data import MAX_BYTES

USER_DATA = b'{"version":"fastness.dev/userdata/v1"}'
TOKEN = "a-session-token"


@dataclass
class Provider:
    """A metadata service on the loopback."""

    answer: Callable[[str, str, dict[str, str]], tuple[int, dict[str, str], bytes]]
    port: int = 0
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head[:-4].split("\r\n")
                method, target, _ = first.split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                self.requests.append((method, target, headers))
                status, extra, body = self.answer(method, target, headers)
                extra_headers = "".join(f"{name}: {value}\r\n" for name, value in extra.items())
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{extra_headers}\r\n".encode() + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def provider(
    answer: Callable[[str, str, dict[str, str]], tuple[int, dict[str, str], bytes]],
) -> AsyncIterator[Provider]:
    made = Provider(answer)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = int(server.sockets[0].getsockname()[1])
    try:
        yield made
    finally:
        server.close()


def cloud(method: str, target: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    """All four clouds, each as strict as the real one."""
    routes = {
        ("PUT", "/latest/api/token", "x-aws-ec2-metadata-token-ttl-seconds", "60"): (TOKEN.encode(), {}),
        ("GET", "/latest/user-data", "x-aws-ec2-metadata-token", TOKEN): (USER_DATA, {}),
        ("GET", "/metadata/instance/compute/userData?api-version=2021-01-01&format=text", "metadata", "true"): (
            base64.b64encode(USER_DATA), {},
        ),
        ("GET", "/computeMetadata/v1/instance/attributes/user-data", "metadata-flavor", "Google"): (
            USER_DATA, {"Metadata-Flavor": "Google"},
        ),
        ("GET", "/openstack/latest/user_data", "accept", "*/*"): (USER_DATA, {}),
    }  # fmt: skip
    for (verb, path, header, value), (body, extra) in routes.items():
        if (method, target, headers.get(header)) == (verb, path, value):
            return 200, dict(extra), body
    return 401, {}, b"who are you"


CLOUDS = [aws, azure, gcp, openstack]


@pytest.mark.parametrize("make", CLOUDS)
async def test_each_cloud_is_asked_as_it_wants_to_be(make: Callable[[str], Metadata]) -> None:
    async with provider(cloud) as service:
        assert await make(service.url).read() == USER_DATA


async def test_aws_is_never_asked_without_a_session() -> None:
    async with provider(lambda method, *_: (404, {}, b"") if method == "PUT" else (200, {}, USER_DATA)) as service:
        with pytest.raises(UserDataFailure, match="no session token"):
            await aws(service.url).read()
    assert [method for method, _, _ in service.requests] == ["PUT"]


@pytest.mark.parametrize("make", [azure, gcp, openstack])
@pytest.mark.parametrize("status", [204, 404])
async def test_a_service_without_user_data_has_none(make: Callable[[str], Metadata], status: int) -> None:
    async with provider(lambda *_: (status, {}, b"")) as service:
        assert await make(service.url).read() is None


@pytest.mark.parametrize("make", [azure, gcp, openstack])
async def test_nobody_is_followed_to_another_place(make: Callable[[str], Metadata]) -> None:
    async with provider(cloud) as other:
        led = {"location": f"{other.url}/openstack/latest/user_data"}
        async with provider(lambda *_: (302, led, b"")) as service:
            with pytest.raises(UserDataFailure, match="answered 302"):
                await make(service.url).read()
        assert other.requests == []


async def test_google_answers_as_google_does() -> None:
    async with provider(lambda *_: (200, {}, USER_DATA)) as service:
        with pytest.raises(UserDataFailure, match="as that service does"):
            await gcp(service.url).read()


@pytest.mark.parametrize("make", [azure, openstack])
async def test_more_than_user_data_can_be_is_refused(make: Callable[[str], Metadata]) -> None:
    large = base64.b64encode(bytes(MAX_BYTES + 1)) if make is azure else bytes(MAX_BYTES + 1)
    async with provider(lambda *_: (200, {}, large)) as service:
        with pytest.raises(BadUserData):
            await make(service.url).read()


async def test_what_is_not_encoded_as_azure_does_is_refused() -> None:
    async with provider(lambda *_: (200, {}, b"{plain}")) as service:
        with pytest.raises(BadUserData, match="base64"):
            await azure(service.url).read()


async def test_a_service_that_is_not_there_may_come() -> None:
    async with provider(cloud) as service:
        url = service.url
    with pytest.raises(UserDataFailure, match="does not answer") as failure:
        await openstack(url).read()
    assert not isinstance(failure.value, BadUserData)


@pytest.mark.parametrize("service", ["http://192.0.2.1", "http://metadata.google.internal", "http://[2001:db8::1]"])
def test_only_an_address_of_this_link_is_asked(service: str) -> None:
    with pytest.raises(ValueError, match=r"link-local|IPv4"):
        openstack(service)
    assert SERVICE == "http://169.254.169.254"


async def test_a_file_is_read_and_no_link_is_followed(tmp_path: Path) -> None:
    place = tmp_path / "user-data"
    assert await FilePlace(place).read() is None
    place.write_bytes(b"")
    assert await FilePlace(place).read() is None
    place.write_bytes(USER_DATA)
    assert await FilePlace(place).read() == USER_DATA
    place.write_bytes(bytes(MAX_BYTES + 1))
    with pytest.raises(BadUserData, match="more than"):
        await FilePlace(place).read()
    (tmp_path / "link").symlink_to(place)
    os.mkfifo(tmp_path / "pipe")
    for other in ("link", "pipe"):
        with pytest.raises(UserDataFailure):
            await FilePlace(tmp_path / other).read()
    assert str(fw_cfg().path) == "/sys/firmware/qemu_fw_cfg/by_name/opt/com.coreos/config/raw"


@contextmanager
def directory(device: Path, kinds: str) -> Iterator[Path]:
    """A directory in place of what mount shows."""
    yield device


def drive(place: Path, file: tuple[str, ...]) -> Drive:
    return Drive("drive", (place / "absent", place), file, mount=directory)


@pytest.mark.parametrize("file", [("openstack", "latest", "user_data"), ("user-data",), ("CustomData.bin",)])
async def test_a_drive_has_a_file(tmp_path: Path, file: tuple[str, ...]) -> None:
    path = tmp_path.joinpath("disc", *file)
    path.parent.mkdir(parents=True)
    assert await drive(tmp_path / "disc", file).read() is None
    path.write_bytes(USER_DATA)
    assert await drive(tmp_path / "disc", file).read() == USER_DATA
    assert await Drive("drive", (tmp_path / "absent",), file, mount=directory).read() is None


def test_the_links_of_a_disc_lead_nowhere(tmp_path: Path) -> None:
    """A host's disc may hold links to the machine's own files."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "user_data").write_bytes(USER_DATA)
    disc = tmp_path / "disc"
    (disc / "openstack").mkdir(parents=True)
    (disc / "openstack" / "latest").symlink_to(tmp_path / "secret")
    (disc / "user-data").symlink_to(tmp_path / "secret" / "user_data")
    (disc / "directory").mkdir()
    for steps in (("openstack", "latest", "user_data"), ("user-data",), ("directory",)):
        with pytest.raises(BadUserData, match="not a plain file"):
            read_below(disc, steps)


def test_a_drive_is_mounted_so_that_nothing_on_it_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str], *, seconds: float) -> str:
        commands.append(command)
        return ""

    monkeypatch.setattr(drives, "run", run)
    with drives.mounted(Path("/dev/sr0"), "udf") as place:
        assert place.is_dir()
    assert commands[0][:5] == ["mount", "-t", "udf", "-o", "ro,nosuid,nodev,noexec"]
    assert commands[1] == ["umount", "--", str(place)]
    assert not place.exists()


async def test_a_disk_is_known_by_its_serial_number(tmp_path: Path) -> None:
    for name, serial in (("vda", "root"), ("vdb", "ignition")):
        (tmp_path / "block" / name).mkdir(parents=True)
        (tmp_path / "block" / name / "serial").write_text(serial)
    (tmp_path / "vdb").write_bytes(USER_DATA.ljust(512, b"\0"))
    disk = SerialDisk(blocks=tmp_path / "block", devices=tmp_path)
    assert await disk.read() == USER_DATA
    (tmp_path / "vdb").write_bytes(b"x" * (MAX_BYTES + 512))
    with pytest.raises(BadUserData, match="more than"):
        await disk.read()
    (tmp_path / "block" / "vda" / "serial").write_text("ignition\n")
    with pytest.raises(BadUserData, match="2 disks"):
        await disk.read()
    assert await SerialDisk(blocks=tmp_path / "none", devices=tmp_path).read() is None


def guest(value: str, encoding: str = "") -> GuestInfo:
    def run(command: Sequence[str]) -> str:
        assert command[0] == "vmware-rpctool"
        reply = {f"info-get {DATA}": value, f"info-get {DATA}.encoding": encoding}[command[1]]
        if not reply:
            raise CommandFailed("`vmware-rpctool …` ended with 1: No value found", status=1)
        return f"{reply}\n"

    return GuestInfo(run=run)


async def test_variables_of_vmware_are_plain_or_base64() -> None:
    assert await guest("").read() is None
    assert await guest(USER_DATA.decode()).read() == USER_DATA
    assert await guest(base64.b64encode(USER_DATA).decode(), "base64").read() == USER_DATA
    for value, encoding in (("H4sI", "gzip+base64"), ("%%%", "base64"), ("x" * (2 * MAX_BYTES + 1), "")):
        with pytest.raises(BadUserData):
            await guest(value, encoding).read()


async def test_a_machine_without_the_tool_says_so() -> None:
    def run(command: Sequence[str]) -> str:
        raise CommandFailed("`vmware-rpctool`: No such file or directory")

    with pytest.raises(UserDataFailure, match="No such file"):
        await GuestInfo(run=run).read()


@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_every_platform_has_places_with_names(platform: str) -> None:
    places: tuple[UserDataSource, ...] = places_of(platform)
    assert places
    assert all(place.name for place in places)
    assert platform_of(f"quiet ignition.platform.id={platform} rw\n") == platform


@pytest.mark.parametrize("line", ["quiet", "ignition.platform.id=aws ignition.platform.id=gcp", ""])
def test_a_command_line_names_one_platform(line: str) -> None:
    with pytest.raises(UnknownPlatform):
        platform_of(line)
    with pytest.raises(UnknownPlatform):
        places_of("digitalocean")
