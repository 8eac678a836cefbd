"""Leaving the initial file system: every bank moves, it is read back, and a register that did not move stops the boot."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.host.errors import ReportFailure, TpmFailure
from fastness.agent.host.tee.boot_phase import leave_by_register, read_banks
from fastness.agent.host.tee.configfs_tsm import TsmAttester, TsmReports
from fastness.agent.host.tee.this_boot import DisksFile, RuntimeLog
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.protocol.disk_report import DiskReport
from fastness.protocol.user_data_event import LEAVE_INITRD
from tests.swtpm import Swtpm
from tests.virtual import SeededEntropy

HEADER = {
    "uuid": "0d7d1f0c-5f2c-4c7b-9a7e-0123456789ab", "cipher": "aes-xts-plain64", "integrity": "none", "sectorSize": 4096,
    "segmentsDigest": "sha256:" + "ab" * 32,
}  # fmt: skip


def banks(swtpm: Swtpm) -> dict[str, bytes]:
    return read_banks(swtpm.tool("pcrread"))


def extended(bank: str, value: bytes) -> bytes:
    return hashlib.new(bank, value + hashlib.new(bank, LEAVE_INITRD).digest()).digest()


async def test_every_bank_of_the_tpm_moves_to_what_the_word_makes_of_it(swtpm: Swtpm, tmp_path: Path) -> None:
    before = banks(swtpm)
    assert len(before) > 1
    tpm = TpmAttester(TpmTools(swtpm.tcti, event_log=tmp_path / "no-log"), tmp_path / "ak")
    assert await tpm.leave_initrd()
    assert banks(swtpm) == {bank: extended(bank, value) for bank, value in before.items()}


def silent(real: TpmTools, words: Sequence[str]) -> str:
    """tpm2-tools of which one says that it extended and did not."""
    if words[0] == "tpm2_pcrevent":
        return ""
    return "  sha1:\n    11: 0x" + "00" * 20 + "\n  sha256:\n    11: 0x" + "00" * 32 + "\n"


async def test_a_register_that_did_not_move_is_a_failure(tmp_path: Path) -> None:
    tools = TpmTools("device:x", event_log=tmp_path / "no-log", run=lambda words: silent(tools, words))
    with pytest.raises(TpmFailure, match="bank sha1 did not move") as failure:
        await tools.leave_initrd()
    assert "must not go on" in failure.value.hint


async def test_one_bank_that_stayed_is_a_failure(tmp_path: Path) -> None:
    moved = hashlib.sha256(bytes(32) + hashlib.sha256(LEAVE_INITRD).digest()).hexdigest()
    reads = iter(["00" * 32, moved])

    def tool(words: Sequence[str]) -> str:
        if words[0] != "tpm2_pcrread":
            return ""
        return f"  sha256:\n    11: 0x{next(reads)}\n  sha384:\n    11: 0x{'00' * 48}\n"

    with pytest.raises(TpmFailure, match="bank sha384"):
        await TpmTools("device:x", event_log=tmp_path / "no-log", run=tool).leave_initrd()


@pytest.mark.parametrize(
    "printed", ["", "  sha256:\n", "  sha1:\n    11: 0x00\n", "    11: 0x00\n", "  sha256:\n    12: 0x00\n"]
)
def test_a_tpm_that_shows_no_register_is_a_failure(printed: str) -> None:
    with pytest.raises(TpmFailure):
        read_banks(printed)


class Rtmr:
    """RTMR 3 as the kernel shows it: a write of one digest extends it."""

    def __init__(self, *, moves: bool = True) -> None:
        self.value = bytes(48)
        self.moves = moves

    def read_bytes(self) -> bytes:
        return self.value

    @contextmanager
    def open(self, mode: str, buffering: int) -> Iterator[Rtmr]:
        yield self

    def write(self, digest: bytes) -> None:
        if self.moves:
            self.value = hashlib.sha384(self.value + digest).digest()


def trust_domain(register: Any, tmp_path: Path) -> TsmAttester:
    return TsmAttester(
        TsmReports(tmp_path / "tsm"), tmp_path / "identity", SeededEntropy(1), "tdx", runtime_register=register,
        runtime_log=RuntimeLog(tmp_path / "measured"), disks=DisksFile(tmp_path / "disks.json"),
    )  # fmt: skip


async def test_a_trust_domain_extends_its_register_and_no_log_tells_it(tmp_path: Path) -> None:
    register = Rtmr()
    assert await trust_domain(register, tmp_path).leave_initrd()
    assert register.value == extended("sha384", bytes(48))
    assert RuntimeLog(tmp_path / "measured").events() == []


@pytest.mark.parametrize("register", [Rtmr(moves=False), Path("/nonexistent/rtmr3:sha384")])
async def test_a_trust_domain_whose_register_stays_does_not_go_on(register: Any, tmp_path: Path) -> None:
    with pytest.raises(ReportFailure):
        await trust_domain(register, tmp_path).leave_initrd()


def test_a_file_in_place_of_the_register_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "rtmr").write_bytes(bytes(48))
    with pytest.raises(ReportFailure, match="did not move"):
        leave_by_register(tmp_path / "rtmr")


async def test_an_snp_guest_has_no_register_and_says_so(tmp_path: Path) -> None:
    guest = TsmAttester(TsmReports(tmp_path / "tsm"), tmp_path / "identity", SeededEntropy(1), "snp")
    assert not await guest.leave_initrd()


async def test_what_a_boot_opened_goes_with_every_later_proof_of_it(tmp_path: Path) -> None:
    report = DiskReport("var", 7, 6, "k2", HEADER)
    await trust_domain(Rtmr(), tmp_path).opened([report])
    later = trust_domain(Rtmr(), tmp_path)
    assert list(await later.disks()) == [report]
    (tmp_path / "disks.json").write_text('{"fastness-disks":[{}]}')
    with pytest.raises(ReportFailure, match="cannot be read"):
        await later.disks()
