"""Files that the owner of a host put onto a machine's disk before it booted: no agent takes them for its identity.

The attacker writes the disk while the machine is off, as root and with every mode right, and may have used the machine's TPM
before. The agent is the real one, the TPM is swtpm behind tpm2-tools, and the door is the real door over HTTPS.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.agent.host.errors import IdentityRefused
from fastness.agent.host.tee import identity
from fastness.agent.host.tee.configfs_tsm import TsmAttester, TsmReports
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.cli.machine import agent_attester, agent_hardware
from fastness.cli.main import cli
from fastness.crypto.digests import sha256
from fastness.crypto.keys import PrivateKey
from fastness.formats.evidence.tpm.public import parse_public
from tests.component.enrolment.test_with_swtpm import publish, spec
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, doors
from tests.swtpm import Maker, Swtpm


def guest_key(directory: Path) -> bytes:
    """A directory with a guest key, as the agent would have left it: nothing about its files gives it away."""
    directory.mkdir(mode=0o700, parents=True)
    pem = PrivateKey.generate(ENTROPY).to_pem().reveal()
    for name, content in ((identity.GUEST_KEY, pem), (identity.BROKER, b"https://127.0.0.1:1")):
        (directory / name).write_bytes(content)
        (directory / name).chmod(0o600)
    return pem


def keep_identity(source: Path, target: Path) -> Result:
    """What the unit does after a first boot."""
    return CliRunner().invoke(cli, ["agent", "keep-identity", "--from", str(source), "--to", str(target)])


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Where the machine keeps its state, as systemd makes it."""
    place = tmp_path / "var"
    place.mkdir(mode=0o700)
    return place / "identity"


def test_the_key_that_enrolled_wins_over_a_directory_that_was_planted(tmp_path: Path, disk: Path) -> None:
    planted, enrolled = guest_key(disk), guest_key(tmp_path / "run")
    done = keep_identity(tmp_path / "run", disk)
    assert (done.exit_code, "held already" in done.output) == (0, False), done.output
    assert (disk / identity.GUEST_KEY).read_bytes() == enrolled
    assert (disk.with_name("identity.refused") / identity.GUEST_KEY).read_bytes() == planted
    assert "held already" in keep_identity(tmp_path / "run", disk).output
    assert (disk / identity.GUEST_KEY).read_bytes() == enrolled


def test_a_link_in_place_of_the_directory_is_replaced_and_not_followed(tmp_path: Path, disk: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    planted = guest_key(elsewhere)
    disk.symlink_to(elsewhere)
    enrolled = guest_key(tmp_path / "run")
    assert keep_identity(tmp_path / "run", disk).exit_code == 0
    assert (disk.is_symlink(), (disk / identity.GUEST_KEY).read_bytes()) == (False, enrolled)
    assert (elsewhere / identity.GUEST_KEY).read_bytes() == planted


def test_a_copy_that_was_cut_off_is_begun_anew(tmp_path: Path, disk: Path) -> None:
    enrolled = guest_key(tmp_path / "run")
    guest_key(disk.with_name("identity.new"))
    assert keep_identity(tmp_path / "run", disk).exit_code == 0
    assert (disk / identity.GUEST_KEY).read_bytes() == enrolled
    assert not disk.with_name("identity.new").exists()


@pytest.mark.parametrize("planted", ["readable", "writable directory", "link", "second name", "unknown file", "owner"])
async def test_later_the_files_must_be_the_agents_own(disk: Path, tmp_path: Path, planted: str) -> None:
    guest_key(disk)
    guest = TsmAttester(TsmReports(tmp_path / "none"), disk, ENTROPY, "snp")
    await guest.trusted()
    plant(planted, disk, tmp_path)
    with pytest.raises(IdentityRefused):
        await guest.trusted()


def plant(planted: str, disk: Path, tmp_path: Path) -> None:
    """One thing about the directory that the agent would not have left so."""
    key = disk / identity.GUEST_KEY
    match planted:
        case "readable":
            key.chmod(0o644)
        case "writable directory":
            disk.chmod(0o770)
        case "link":
            key.rename(tmp_path / "key")
            key.symlink_to(tmp_path / "key")
        case "second name":
            os.link(key, tmp_path / "key")
        case "unknown file":
            (disk / "config").write_text("")
        case "owner":
            if os.geteuid() != 0:
                pytest.skip("only root gives files away")
            os.chown(key, 12345, 12345)


def hardware(tpm: Swtpm, disk: Path) -> agent_hardware.Hardware:
    """What the agent is told on its command line."""
    return agent_hardware.Hardware("tpm", tpm.tcti, disk, disk.with_name("no-log"))


async def thumbprint(attester: TpmAttester | TsmAttester) -> str:
    """The identity as the record names it."""
    return str(sha256(parse_public(await attester.identity_public()).spki))


async def test_an_attestation_key_that_lies_there_before_the_first_boot_does_not_enrol(
    embedded_server: Embedded, swtpm: Swtpm, tpm_maker: Maker, disk: Path
) -> None:
    """The attacker had the machine's TPM before and made an attestation key in it."""
    planted = TpmAttester(TpmTools(swtpm.tcti, event_log=disk.with_name("none")), disk)
    theirs = await thumbprint(planted)
    (disk / identity.SEAL).unlink()
    async with doors(embedded_server.cluster, spec(tpm_maker)) as world:
        await publish(world, tpm_maker)
        machine = await agent_attester.attester_of(hardware(swtpm, disk), first_boot=True)
        await world.enrol(machine, await world.ticket(uses=1), seconds=60)
        (enrolled,) = await world.machines()
    assert enrolled["status"]["keyThumbprint"] == await thumbprint(machine) != theirs
    assert disk.with_name("identity.refused").is_dir()


async def test_after_the_first_boot_the_tpm_tells_its_agents_files_from_others(
    swtpm: Swtpm, other_swtpm: Swtpm, disk: Path
) -> None:
    machine = await agent_attester.attester_of(hardware(swtpm, disk), first_boot=True)
    mine = await thumbprint(machine)
    swtpm.reset()
    assert await thumbprint(await agent_attester.attester_of(hardware(swtpm, disk))) == mine
    whole = disk.with_name("whole")
    shutil.copytree(disk, whole)

    async def refused() -> bool:
        try:
            await agent_attester.attester_of(hardware(swtpm, disk))
        except IdentityRefused:
            return True
        return False

    # Another broker beside the right key.
    (disk / identity.BROKER).write_bytes(b"https://127.0.0.1:1")
    (disk / identity.BROKER).chmod(0o600)
    assert await refused()
    # The whole directory of another machine, sealed by its own TPM.
    shutil.rmtree(disk)
    await thumbprint(TpmAttester(TpmTools(other_swtpm.tcti, event_log=disk.with_name("none")), disk))
    assert await refused()
    shutil.rmtree(disk)
    shutil.copytree(whole, disk)
    assert not await refused()
