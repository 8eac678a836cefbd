"""Images of CRI-O: what `crictl` and `skopeo` are asked, and the drop-in that names what is pinned."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastness.agent.host.crio_images import CREDENTIALS, CrioImages
from fastness.agent.host.errors import CommandFailed, FileFailure, ImageFailure, UnitFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import File, State
from fastness.kinds.machineconfiguration.names import PINNED_IMAGES_FILE

LAYERS = {
    "config": {"digest": "sha256:" + "0" * 64, "size": 1},
    "layers": [{"digest": "sha256:" + "1" * 64, "size": 42}],
}
MANIFEST = json.dumps(LAYERS).encode()
IMAGE = f"quay.example/team/app@sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
OTHER = "quay.example/team/lib@sha256:" + "2" * 64


class Host:
    """Programs that answer as they are told to, and a service that counts its reloads."""

    def __init__(self, root: Path) -> None:
        self.root = RootedFiles(root, owners=False)
        self.commands: list[Sequence[str]] = []
        self.statuses: dict[str, object] = {}
        self.raw = MANIFEST
        self.reloads = 0
        self.reload_fails = False
        self.images = CrioImages(self.root, self._reload, "linux/amd64", ask=self._ask)

    def _reload(self, service: str) -> None:
        assert service == "crio.service"
        if self.reload_fails:
            raise UnitFailure("crio.service does not run")
        self.reloads += 1

    async def _ask(self, command: Sequence[str], *, typed: str = "") -> bytes:
        self.commands.append(command)
        if "inspecti" in command:
            status = self.statuses.get(command[-1])
            if status is None:
                raise CommandFailed(f'`crictl`: no such image "{command[-1]}" present', status=1)
            return json.dumps({"status": status}).encode()
        return self.raw if "skopeo" in command else b""

    def drop_in(self) -> list[str] | None:
        state = self.root.look(PINNED_IMAGES_FILE)
        if not isinstance(state, File):
            return None
        assert state.mode == 0o644
        names: list[str] = tomllib.loads(state.content.decode())["crio"]["image"]["pinned_images"]
        return names


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "etc/crio/crio.conf.d").mkdir(parents=True)
    return Host(tmp_path)


async def test_the_drop_in_names_what_is_pinned_and_the_service_reads_it_when_it_changed(host: Host) -> None:
    await host.images.pin([IMAGE, OTHER])
    assert host.drop_in() == [IMAGE, OTHER]
    await host.images.pin([IMAGE, OTHER])
    assert host.reloads == 1
    await host.images.pin([])
    assert host.drop_in() is None
    assert host.reloads == 2
    await host.images.pin([])
    assert host.reloads == 2


async def test_a_service_that_cannot_read_it_leaves_the_drop_in_as_it_was(host: Host) -> None:
    await host.images.pin([OTHER])
    host.reload_fails = True
    with pytest.raises(UnitFailure):
        await host.images.pin([IMAGE])
    assert host.drop_in() == [OTHER]
    host.reload_fails = False
    await host.images.pin([IMAGE])
    assert (host.drop_in(), host.reloads) == ([IMAGE], 2)


async def test_a_full_disk_leaves_the_drop_in_as_it_was(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    await host.images.pin([OTHER])

    def full(path: str, state: State) -> None:
        raise FileFailure(f"{path}: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(host.root, "put", full)
        with pytest.raises(FileFailure, match="No space left"):
            await host.images.pin([IMAGE])
    assert (host.drop_in(), host.reloads) == ([OTHER], 1)


async def test_an_image_is_here_when_the_runtime_says_so_and_pinned_when_it_says_that(host: Host) -> None:
    host.statuses = {IMAGE: {"id": "x", "pinned": True}}
    assert dict(await host.images.look([IMAGE, OTHER])) == {IMAGE: True}
    host.statuses = {IMAGE: {"id": "x"}}
    assert dict(await host.images.look([IMAGE])) == {IMAGE: False}


async def test_a_runtime_that_does_not_answer_is_not_one_without_images(tmp_path: Path) -> None:
    async def dead(command: Sequence[str], *, typed: str = "") -> bytes:
        raise CommandFailed("connection refused", status=1)

    images = CrioImages(RootedFiles(tmp_path), lambda _: None, "linux/amd64", ask=dead)
    with pytest.raises(ImageFailure, match="connection refused"):
        await images.look([IMAGE])


async def test_the_size_is_believed_when_the_manifest_is_the_one_that_was_asked_for(host: Host) -> None:
    assert await host.images.size(IMAGE) == 42
    assert host.commands[-1] == ["skopeo", "inspect", "--raw", f"docker://{IMAGE}"]
    place = host.root.root / CREDENTIALS.removeprefix("/")
    place.parent.mkdir(parents=True)
    place.write_text("{}")
    await host.images.size(IMAGE)
    assert host.commands[-1][3:5] == ["--authfile", str(place)]
    host.raw = b"{}"
    with pytest.raises(ImageFailure, match="something else"):
        await host.images.size(IMAGE)


async def test_a_pull_is_that_of_the_runtime_itself(host: Host) -> None:
    await host.images.pull(IMAGE)
    socket = "unix:///run/crio/crio.sock"
    assert host.commands == [["crictl", "--runtime-endpoint", socket, "--image-endpoint", socket, "pull", IMAGE]]
