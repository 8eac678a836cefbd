"""The key of a disk for people: two approvers, on the record, into a file that opens the volume elsewhere."""

from __future__ import annotations

import asyncio
import base64
import stat
import subprocess
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from click.testing import CliRunner, Result

from fastness.agent.disks.block_device import FileDevice
from fastness.agent.disks.entropy import KernelEntropy
from fastness.agent.disks.formatting import format_volume
from fastness.agent.disks.volume import VolumeSettings
from fastness.cli.main import cli
from fastness.crypto.jwk import decoded
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.kinds.objects import condition
from fastness.kinds.trusted_execution.disks import RECOVER
from fastness.kinds.trusted_execution.machine import MACHINE, REKEY
from fastness.kube.events import EVENTS
from fastness.kube.port import PatchType, Scope, WriteOptions
from tests.attesting import until
from tests.breakglass import APPROVERS, appointed
from tests.components import require_program
from tests.unlocking import DiskSite, Members, disk_site, leave_initrd, report

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.processes]
PROGRAM = Path("/usr/sbin/cryptsetup")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    spec = {"breakGlass": {"approvers": APPROVERS}}
    async with disk_site(tmp_path_factory.mktemp("disks"), spec, recovery="Approvers") as site:
        await appointed(site.fortress.control_plane)
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


async def run(site: DiskSite, *words: str, near: bool = True) -> Result:
    where = ["--kubeconfig", str(site.fortress.site.place.kubeconfig)] if near else []
    return await asyncio.to_thread(CliRunner().invoke, cli, [*words, *where], prog_name="fastness")


class Desk:
    """What the people have who want to open a disk, in a directory."""

    def __init__(self, site: DiskSite, directory: Path) -> None:
        self.site, self.directory = site, directory
        for number, name in enumerate(("ada", "grace", "eve"), 1):
            path = directory / f"{name}.key"
            path.write_bytes(base64.b64encode(bytes([number]) * 32))
            path.chmod(0o600)

    def path(self, name: str) -> str:
        return str(self.directory / name)

    async def ask(self, machine: str, *options: str, reason: str = "the board broke", key: str = "once") -> Result:
        words = (
            "machine",
            "disk",
            "recover",
            "ask",
            machine,
            "var",
            "--reason",
            reason,
            "--key",
            self.path(key),
            *options,
        )
        answer = await run(self.site, *words)
        (self.directory / "recovery.json").write_text(answer.stdout)
        return answer

    async def agree(self, *people: str) -> str:
        output = ""
        for name in people:
            words = (
                "break-glass",
                "agree",
                self.path("recovery.json"),
                "--by",
                name,
                "--key",
                self.path(f"{name}.key"),
            )
            answer = await run(self.site, *words, near=False)
            assert answer.exit_code == 0, answer.output
            output += answer.stderr
        return output

    async def open(self, to: str = "var.key", key: str = "once") -> Result:
        words = ("machine", "disk", "recover", "open", self.path("recovery.json"), "--key", self.path(key), "--to")
        return await run(self.site, *words, self.path(to))


@pytest.fixture
def desk(site: DiskSite, tmp_path: Path) -> Desk:
    return Desk(site, tmp_path)


async def disk_of(site: DiskSite, machine: Any) -> dict[str, Any]:
    (disk,) = (await site.machine(machine))["status"]["disks"]
    return dict(disk)


def formatted(path: Path, key: bytes) -> Path:
    """A disk as the agent makes it with the key that it was released."""
    with path.open("wb") as file:
        file.truncate(32 * 1024**2)
    with FileDevice(path) as device:
        format_volume(device, SecretBytes(key), "k1", VolumeSettings(), KernelEntropy())
    return path


def opens(disk: Path, key_file: Path) -> bool:
    words: list[str | Path] = [PROGRAM, "open", "--test-passphrase", "--key-file", key_file, disk]
    return subprocess.run(words, check=False).returncode == 0


async def test_two_approvers_open_the_disk_of_a_machine_elsewhere_and_everybody_is_told(
    site: DiskSite, desk: Desk, tmp_path: Path
) -> None:
    require_program(PROGRAM, "cryptsetup-bin")
    machine = site.boot("snp")
    await site.enrolled(machine)
    released = decoded((await site.unlocked(machine))["keys"][0]["key"])
    leave_initrd(machine)
    stands = await site.attested(machine, report(1))
    name = stands["metadata"]["name"]
    disk = formatted(tmp_path / "disk", released)
    assert "by two approvers, never used" in (await run(site, "machine", "disk", "list")).stdout
    assert (await desk.ask(name)).exit_code == 0
    output = await desk.agree("ada", "grace")
    assert f"the key of var of {name} (Approved) is given to" in output
    answer = await desk.open()
    assert answer.exit_code == 0, answer.output
    assert f"fastness machine disk rekey {name} var" in answer.stderr
    file = tmp_path / "var.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert opens(disk, file)
    file.write_bytes(bytes(32))
    assert not opens(disk, file)
    # What was printed, and what stays on the Machine, has nothing of the key.
    for text in (answer.output, json.encode(await site.machine(machine)).decode()):
        assert base64.b64encode(released).decode().rstrip("=") not in text
        assert released.hex() not in text
    recorded = {
        what: await site.record(what, name) for what in ("disk-recovery-agreed", "disk-recovered", "act-recover-disk")
    }
    assert sorted(entry["who"] for entry in recorded["disk-recovery-agreed"]) == ["ada", "grace"]
    (entry,) = recorded["disk-recovered"]
    assert (entry["detail"]["volume"], entry["detail"]["keys"], entry["detail"]["reason"]) == (
        "var",
        "k1",
        "the board broke",
    )
    assert recorded["act-recover-disk"], "the person who asked is on the record"
    events = (await site.world.cluster.list(EVENTS, Scope("fastness-system"))).items
    assert [event for event in events if event["reason"] == "DiskRecovered" and event["involvedObject"]["name"] == name]

    async def taken_back() -> bool:
        return "answer" not in (await disk_of(site, machine))["recovery"]

    await until(taken_back)
    assert RECOVER not in ((await site.machine(machine))["metadata"].get("annotations") or {})
    listed = (await run(site, "machine", "disk", "list")).stdout
    assert "its key was given to ada and grace at" in listed
    assert "give it a new one" in listed
    assert (condition(await site.machine(machine), "DisksRecoverable") or {}).get("status") == "True"


async def test_a_new_key_ends_what_was_recovered(site: DiskSite, desk: Desk, tmp_path: Path) -> None:
    machine: Any = await site.first_boot("tpm")
    name = (await site.machine(machine))["metadata"]["name"]
    await desk.ask(name)
    await desk.agree("ada", "grace")
    assert (await desk.open()).exit_code == 0
    await site.patch(machine, metadata={"annotations": {REKEY: "var"}})
    await site.until_status(machine, lambda disk: disk.get("nextKeyId") == "k2")
    # While there are two, both are given, the one that the disk has under the name that was asked for.
    await desk.ask(name, key="twice")
    await desk.agree("ada", "grace")
    both = await desk.open("both.key", "twice")
    assert both.exit_code == 0, both.output
    assert (tmp_path / "both.key").read_bytes() == (tmp_path / "var.key").read_bytes()
    assert (tmp_path / "both.key.k2").read_bytes() != (tmp_path / "var.key").read_bytes()
    again = site.boot("tpm", 2)
    await site.unlocked(again, Members(identity=False))
    leave_initrd(again)
    await site.attested(again, report(2, "k2"))
    assert "its key was given" in (await run(site, "machine", "show", name)).stdout
    await desk.ask(name, key="third")
    await desk.agree("ada", "grace")

    async def alone() -> bool:
        return not (await disk_of(site, machine)).get("nextKeyId")

    await until(alone)
    assert (await desk.open("new.key", "third")).exit_code == 0
    assert (tmp_path / "new.key").read_bytes() == (tmp_path / "both.key.k2").read_bytes()


@pytest.mark.parametrize("people", [("ada",), ("ada", "ada"), ("ada", "eve"), ()])
async def test_one_person_alone_a_stranger_and_nobody_get_nothing(
    site: DiskSite, desk: Desk, people: tuple[str, ...]
) -> None:
    machine = await site.first_boot("tpm")
    name = (await site.machine(machine))["metadata"]["name"]
    await desk.ask(name)
    await desk.agree(*people)
    answer = await desk.open()
    assert (answer.exit_code, "not-agreed" in answer.output) == (1, True)
    # Past the command line, as whoever may edit Machines writes it.
    await site.patch(machine, metadata={"annotations": {RECOVER: (desk.directory / "recovery.json").read_text()}})
    stands = await site.until_status(machine, lambda disk: (disk.get("recovery") or {}).get("refused") == "not-agreed")
    (disk,) = stands["status"]["disks"]
    assert "answer" not in disk["recovery"]
    assert "at" not in disk["recovery"]
    (entry,) = await site.record("disk-recovery-refused", name)
    assert entry["detail"]["code"] == "not-agreed"
    assert await site.record("disk-recovered", name) == []


async def test_a_refusal_is_written_on_the_volume_that_it_is_about(site: DiskSite, desk: Desk) -> None:
    machine = await site.first_boot("tpm")
    stored = await site.machine(machine)
    name = stored["metadata"]["name"]
    await desk.ask(name)
    await desk.agree("ada")
    # A machine with two volumes, of which the first is another one.
    other = {
        "volume": "root",
        "state": "Pending",
        "keyId": "k1",
        "recovery": {"refused": "expired", "message": "of before"},
    }
    disks = {"status": {"disks": [other, *stored["status"]["disks"]]}}
    status = WriteOptions(subresource="status")
    await site.world.cluster.patch(MACHINE.resource, name, disks, PatchType.MERGE, "fastness-system", status)
    statement = (desk.directory / "recovery.json").read_text()
    for text, code, about in (
        (statement, "not-agreed", "var"), (statement.replace('"var"', '"data"'), "no-such-disk", "root"),
        ("{", "unreadable", "root"),
    ):  # fmt: skip
        await site.patch(machine, metadata={"annotations": {RECOVER: text}})

        async def told(code: str = code, about: str = about) -> bool:
            volumes = {disk["volume"]: disk for disk in (await site.machine(machine))["status"]["disks"]}
            return bool((volumes[about].get("recovery") or {}).get("refused") == code)

        await until(told)
        if about == "var":
            first, _ = (await site.machine(machine))["status"]["disks"]
            assert first["recovery"] == other["recovery"], "that of another volume stays"
    recorded = {
        entry["detail"]["code"]: entry["detail"]["volume"] for entry in await site.record("disk-recovery-refused", name)
    }
    assert recorded == {"not-agreed": "var", "no-such-disk": "root", "unreadable": "root"}


async def test_an_answer_is_for_whom_the_approvers_signed(site: DiskSite, desk: Desk, tmp_path: Path) -> None:
    machine = await site.first_boot("tpm")
    name = (await site.machine(machine))["metadata"]["name"]
    await desk.ask(name, key="thief")
    (tmp_path / "recovery.json").rename(tmp_path / "thief.json")
    await desk.ask(name)
    await desk.agree("ada", "grace")
    document = json.decode((tmp_path / "recovery.json").read_bytes())
    stolen = json.decode((tmp_path / "thief.json").read_bytes())["statement"]["key"]
    changed = {**document, "statement": {**document["statement"], "key": stolen}}
    await site.patch(machine, metadata={"annotations": {RECOVER: json.encode(changed).decode()}})
    await site.until_status(machine, lambda disk: (disk.get("recovery") or {}).get("refused") == "not-agreed")
    wrong = await desk.open(key="thief")
    assert (wrong.exit_code, "does not open" in wrong.output) == (1, True)
    # Used up: the same statement gives no second answer, to whomever.
    again = await desk.open()
    assert (again.exit_code, "statement-used" in again.output) == (1, True)


async def test_a_quarantined_machine_must_be_named_as_such(site: DiskSite, desk: Desk) -> None:
    machine = await site.first_boot("tpm")
    name = (await site.machine(machine))["metadata"]["name"]
    await desk.ask(name)
    await desk.agree("ada", "grace")
    await site.patch(machine, spec={"approval": "Quarantined"})

    async def refused() -> bool:
        return "membership-differs" in (await desk.open()).output

    await until(refused)
    answer = await desk.ask(name, key="twice")
    assert (answer.exit_code, "--although Quarantined" in answer.output) == (1, True)
    assert (await desk.ask(name, "--although", "Quarantined", key="twice")).exit_code == 0
    assert "(Quarantined)" in await desk.agree("ada", "grace")
    assert (await desk.open(key="twice")).exit_code == 0


async def test_bad_questions_are_answered_before_anything_is_made(site: DiskSite, desk: Desk, tmp_path: Path) -> None:
    machine = await site.first_boot("tpm")
    name = (await site.machine(machine))["metadata"]["name"]
    assert (await desk.ask(name, reason=" ")).exit_code == 2
    assert (await desk.ask(name, "--for", "5h")).exit_code == 2
    assert (await desk.ask("nobody")).exit_code == 1
    assert not (tmp_path / "once").exists()
    assert (await desk.ask(name)).exit_code == 0
    assert (await desk.ask(name)).exit_code == 2, "a key is never written over"
    await desk.ask(name, key="twice")
    await desk.agree("ada", "grace")
    (tmp_path / "var.key").write_text("something else")
    assert (await desk.open(key="twice")).exit_code == 2
    assert (tmp_path / "var.key").read_text() == "something else"
    applied = await run(site, "break-glass", "apply", desk.path("recovery.json"))
    assert (applied.exit_code, "recover open" in applied.output) == (2, True)


async def test_an_answer_that_nobody_fetched_goes(site: DiskSite, desk: Desk, tmp_path: Path) -> None:
    machine = await site.first_boot("tpm")
    name = (await site.machine(machine))["metadata"]["name"]
    await desk.ask(name)
    await desk.agree("ada", "grace")
    await site.patch(machine, metadata={"annotations": {RECOVER: (tmp_path / "recovery.json").read_text()}})
    await site.until_status(machine, lambda disk: (disk.get("recovery") or {}).get("answer"))
    site.world.clock.ahead += timedelta(minutes=11)
    # A change of the Machine is a look; without one the loop comes back by itself.
    await site.patch(machine, metadata={"labels": {"touched": "yes"}})
    await site.until_status(machine, lambda disk: "answer" not in disk["recovery"])
