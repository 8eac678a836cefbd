"""`fastness agent unlock` and `leave-initrd`: what the console says when something is missing, and that nothing goes on then."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from fastness.agent.boot.boot import BootRefused
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.note_device import write_device
from fastness.agent.boot.unlock import Unlock
from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.disks.errors import DiskError
from fastness.cli.machine import agent_unlock
from fastness.cli.machine.agent_hardware import Hardware
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.protocol.unlock_note import UnlockNote

UID = "0a5e31a4-6d5c-4e6f-9f0b-3a1e6f0d8f11"
COMMANDS = {"unlock": agent_unlock.unlock, "leave-initrd": agent_unlock.leave_initrd}


class Image:
    """The files of one machine's image, and its disks, as files."""

    def __init__(self, directory: Path) -> None:
        self.volumes, self.trust = directory / "volumes.json", directory / "trust.json"
        self.note, self.disk = directory / "note", directory / "disk"
        self.volumes.write_bytes(json.encode({"var": "/dev/fastness-nowhere"}))
        key = Ed25519Signer(SecretBytes(b"k" * 32)).verifier
        self.trust.write_bytes(json.encode({"ca": trustme.CA().cert_pem.bytes().decode(), "configKeys": [key.jwk()]}))
        self.note.write_bytes(bytes(1 << 20))

    def noted(self, broker: str) -> UnlockNote:
        note = UnlockNote(UID, broker)
        write_device(self.note, note)
        return note

    def run(self, verb: str, *words: str) -> tuple[int, str]:
        """Exit status and everything that is said."""
        places = ["--volumes", str(self.volumes), "--tpm", "swtpm:path=/nowhere", "--tee", "tpm"]
        if verb == "unlock":
            places += ["--note", str(self.note), "--trust", str(self.trust)]
        done = CliRunner().invoke(COMMANDS[verb], [*places, *words])
        error = done.exception
        told = f"{getattr(error, 'message', '')} {getattr(error, 'hint', '')}"
        return int(getattr(error, "exit_code", done.exit_code)), f"{done.output} {told}"


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    monkeypatch.setattr(agent_unlock, "UNLOCK_KEY", tmp_path / "run" / "unlock.key")
    monkeypatch.setattr(agent_unlock, "UNLOCK_IDENTITY", tmp_path / "run" / "unlock")
    return Image(tmp_path)


@pytest.mark.parametrize("verb", COMMANDS)
@pytest.mark.parametrize("words", [("--tee", "abacus"), ("--volume", "var"), ("now",), ("--volumes",)])
def test_arguments_that_nobody_knows_are_an_error_and_nothing_happens(
    image: Image, verb: str, words: tuple[str, ...]
) -> None:
    status, _ = image.run(verb, *words)
    assert status == 2
    assert not (image.note.parent / "run").exists()


@pytest.mark.parametrize("verb", COMMANDS)
@pytest.mark.parametrize("content", [b"", b"{}", b'{"var": "/etc/passwd"}', b'{"var": "/dev/a", "root": "/dev/a"}'])
def test_an_image_that_says_its_volumes_badly_does_not_boot(image: Image, verb: str, content: bytes) -> None:
    image.volumes.write_bytes(content)
    status, text = image.run(verb)
    assert status != 0
    assert str(image.volumes) in text
    assert "Build the image again" in text


def test_an_image_without_volumes_opens_none_and_says_so(image: Image) -> None:
    image.volumes.unlink()
    status, text = image.run("unlock")
    assert status == 0
    assert "has no encrypted volumes" in text


@pytest.mark.parametrize("content", [bytes(1 << 20), b"\xff" * (1 << 20), b"FNOTE1\0\0" + b"\1" * 8192, None])
def test_without_a_note_the_volumes_stay_closed(image: Image, content: bytes | None) -> None:
    if content is None:
        image.note.unlink()
    else:
        image.note.write_bytes(content)
    status, text = image.run("unlock")
    assert status != 0
    assert "(bad-note)" in text
    assert "replace the machine" in text


def test_an_image_that_believes_nobody_asks_nobody(image: Image) -> None:
    image.noted("https://broker.example")
    image.trust.write_text("{}")
    status, text = image.run("unlock")
    assert status != 0
    assert "trust.json of this cluster" in text


class Console:
    """What a machine says, and somebody who waits for words."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.lines: list[str] = []
        self._heard = asyncio.Event()

    def tell(self, line: str) -> None:
        self.lines.append(line)
        if self.words in line:
            self._heard.set()

    async def listen(self, unlocking: Coroutine[None, None, None]) -> list[str]:
        """Let an unlock run until it says the words, then pull the plug; what it said."""
        task = asyncio.create_task(unlocking)
        try:
            await asyncio.wait_for(self._heard.wait(), 60)
            assert not task.done(), "it must go on waiting"
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        return self.lines


def unlocking(image: Image, note: UnlockNote) -> Coroutine[None, None, None]:
    hardware = Hardware("tpm", "swtpm:path=/nowhere", agent_unlock.UNLOCK_IDENTITY, image.note.parent / "log")
    return agent_unlock._unlock({"var": image.disk}, note, ImageTrust.load(image.trust), hardware)


async def test_a_broker_that_is_away_is_waited_for_with_words_and_the_disk_is_not_touched(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console("waiting for the keys")
    monkeypatch.setattr(agent_unlock, "tell", console.tell)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listened on: nobody else gets the port
        note = image.noted(f"https://127.0.0.1:{taken.getsockname()[1]}")
        lines = await console.listen(unlocking(image, note))
    assert note.broker in lines[0]
    assert "(unreachable)" in lines[-1]
    assert not image.disk.exists()


async def test_a_machine_that_is_revoked_while_it_boots_waits_and_says_what_to_do(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console("asking again")
    monkeypatch.setattr(agent_unlock, "tell", console.tell)

    async def revoked(*_: object) -> None:
        raise BootRefused("revoked", "the broker refused (revoked): distrusted", "On the control plane: machine list")

    monkeypatch.setattr(Unlock, "run", revoked)
    lines = await console.listen(unlocking(image, image.noted("https://127.0.0.1:1")))
    assert "refused (revoked)" in lines[-2]
    assert "On the control plane" in lines[-1]


def test_a_volume_that_is_refused_ends_with_its_code_and_opens_nothing(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise DiskRefused("header-refused", "volume var: cipher_null-ecb", "Let a person look.")

    monkeypatch.setattr(Unlock, "run", refused)
    image.noted("https://127.0.0.1:1")
    status, text = image.run("unlock")
    assert status != 0
    assert "volumes stay closed (header-refused)" in text
    assert "Let a person look." in text


def test_leaving_stops_the_boot_where_a_volume_is_not_open(image: Image) -> None:
    key = agent_unlock.UNLOCK_KEY
    key.parent.mkdir()
    key.write_text("a key")
    status, text = image.run("leave-initrd")
    assert status != 0
    assert "this boot does not go on (volume-not-mounted): volume var is not open" in text
    assert not key.exists(), "the unlock key is forgotten whatever happens"


def test_leaving_stops_the_boot_where_the_register_cannot_be_extended(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_unlock, "check_mounted", lambda *_: None)
    status, text = image.run("leave-initrd")
    assert status != 0
    assert "the phase is over" not in text


def test_leaving_without_volumes_and_without_a_tpm_goes_on(image: Image) -> None:
    image.volumes.unlink()
    status, text = image.run("leave-initrd")
    assert status == 0
    assert "the boot goes on" in text


def test_a_kernel_without_the_mapper_counts_as_not_open(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoMapper:
        def table(self, name: str) -> None:
            raise DiskError("mapper", f"no mapper for {name}")

    monkeypatch.setattr(agent_unlock, "KernelMapper", NoMapper)
    status, text = image.run("leave-initrd")
    assert status != 0
    assert "no mapper for fastness-var" in text
