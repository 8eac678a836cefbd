"""Reports of the processor: a directory that behaves as the kernel's, and what goes wrong with the real one."""

from __future__ import annotations

import base64
import errno
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fastness.agent.boot.attester import Attester
from fastness.agent.host.errors import ReportFailure
from fastness.agent.host.tee.configfs_tsm import ATTEMPTS, KEY, MAX_BLOB, TsmAttester, TsmReports
from fastness.agent.host.tee.this_boot import RuntimeLog
from fastness.crypto.jwk import public_jwk, public_key
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.formats.evidence.eventlog.log import parse_log
from fastness.formats.evidence.snp.certificate_table import TableEntry, table
from fastness.runtime.clock import SystemEntropy
from tests.evidence.tpm import event_log

ENTROPY = SystemEntropy()
DATA = bytes(range(64))


class FakeKernel(TsmReports):
    """A directory in which attributes appear with an entry, and a report with what is written into it."""

    def __init__(self, directory: Path, provider: str = "sev_guest") -> None:
        directory.mkdir(exist_ok=True)
        super().__init__(directory)
        self.provider = provider
        self.report_of: Callable[[bytes], bytes] = lambda data: b"report over " + data
        self.auxiliary: bytes | None = None
        self.interfering = 0
        self.failing: list[int] = []
        self.entries: list[str] = []

    def _make(self, entry: Path) -> None:
        super()._make(entry)
        self.entries.append(entry.name)
        (entry / "provider").write_text(f"{self.provider}\n")
        (entry / "generation").write_text("0\n")

    def _write(self, path: Path, data: bytes) -> None:
        super()._write(path, data)
        if self.failing:
            raise OSError(self.failing.pop(0), "as the test says")
        writers = 2 if self.interfering else 1
        self.interfering = max(self.interfering - 1, 0)
        entry = path.parent
        (entry / "generation").write_text(f"{int((entry / 'generation').read_text()) + writers}\n")
        (entry / "outblob").write_bytes(self.report_of(data))
        if self.auxiliary is not None:
            (entry / "auxblob").write_bytes(self.auxiliary)

    def _remove(self, entry: Path) -> None:
        for path in entry.iterdir():
            path.unlink()
        super()._remove(entry)


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path / "report")


def attester(kernel: TsmReports, directory: Path, tee: str = "snp") -> TsmAttester:
    return TsmAttester(
        kernel, directory / "identity", ENTROPY, tee, event_log=directory / "ccel", boot_key=directory / "run" / "boot.key"
    )  # fmt: skip


async def test_a_report_covers_what_was_written_and_the_entry_is_gone_afterwards(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    answer = await kernel.report(DATA)
    assert (answer.tee, answer.report, answer.auxiliary) == ("snp", b"report over " + DATA, b"")
    assert list((tmp_path / "report").iterdir()) == []
    await kernel.report(DATA)
    assert len(set(kernel.entries)) == 2


async def test_a_report_in_whose_making_somebody_else_wrote_is_thrown_away(kernel: FakeKernel) -> None:
    kernel.interfering = 2
    assert (await kernel.report(DATA)).report == b"report over " + DATA
    assert len(kernel.entries) == 3
    kernel.interfering = ATTEMPTS
    with pytest.raises(ReportFailure, match="somebody else"):
        await kernel.report(DATA)


async def test_a_busy_kernel_is_asked_again_and_another_failure_is_told(kernel: FakeKernel) -> None:
    kernel.failing = [errno.EBUSY, errno.ETIMEDOUT]
    assert (await kernel.report(DATA)).report
    kernel.failing = [errno.EIO]
    with pytest.raises(ReportFailure, match="as the test says"):
        await kernel.report(DATA)


@pytest.mark.parametrize("size", [0, 32, 63, 65])
async def test_a_report_covers_sixty_four_bytes(kernel: FakeKernel, size: int) -> None:
    with pytest.raises(ReportFailure, match="64"):
        await kernel.report(bytes(size))


async def test_an_endless_blob_is_not_read(kernel: FakeKernel) -> None:
    kernel.report_of = lambda data: bytes(MAX_BLOB + 1)
    with pytest.raises(ReportFailure, match="more than"):
        await kernel.report(DATA)


async def test_a_machine_without_reports_says_so(tmp_path: Path) -> None:
    reports = TsmReports(tmp_path / "nothing")
    assert not reports.offered
    with pytest.raises(ReportFailure) as failed:
        await reports.report(DATA)
    assert "6.7" in failed.value.hint
    with pytest.raises(ReportFailure):
        await reports.tee()


async def test_a_directory_that_is_not_the_kernels_gives_no_report(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    with pytest.raises(ReportFailure):
        await TsmReports(tmp_path / "report").report(DATA)


async def test_an_unknown_provider_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportFailure, match="arm_cca"):
        await FakeKernel(tmp_path / "report", "arm_cca_guest").tee()


async def test_what_makes_the_reports_is_found_out(tmp_path: Path) -> None:
    attester = await TsmAttester.detected(FakeKernel(tmp_path / "report", "tdx_guest"), tmp_path / "identity", ENTROPY)
    assert attester.tee == "tdx"


async def test_an_snp_guest_shows_its_report_with_the_hosts_certificates(kernel: FakeKernel, tmp_path: Path) -> None:
    kernel.auxiliary = table((TableEntry("VCEK", b"vcek"), TableEntry("ASK", b"ask")))
    evidence = await attester(kernel, tmp_path).evidence(DATA)
    assert base64.b64decode(evidence["attestation_report"]) == b"report over " + DATA
    assert [entry["cert_type"] for entry in evidence["cert_chain"]] == ["VCEK", "ASK"]
    kernel.auxiliary = b"nonsense of the host"
    assert (await attester(kernel, tmp_path).evidence(DATA))["cert_chain"] == []


async def test_a_trust_domain_shows_its_quote_with_the_event_log(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path / "report", "tdx_guest")
    domain = attester(kernel, tmp_path, "tdx")
    assert set(await domain.evidence(DATA)) == {"quote"}
    (tmp_path / "ccel").write_bytes(b"events")
    assert base64.b64decode((await domain.evidence(DATA))["cc_eventlog"]) == b"events"


async def test_evidence_of_another_kind_than_the_machine_enrolled_with_is_not_sent(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    with pytest.raises(ReportFailure, match="not tdx"):
        await attester(kernel, tmp_path, "tdx").evidence(DATA)


async def test_the_identity_is_one_key_that_outlives_the_process(kernel: FakeKernel, tmp_path: Path) -> None:
    first: Attester = attester(kernel, tmp_path)
    public = await first.identity_public()
    assert await attester(kernel, tmp_path).identity_public() == public
    path = tmp_path / "identity" / KEY
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == [KEY]
    signature = await first.sign(b"message")
    key = PrivateKey.from_pem(SecretBytes(path.read_bytes()))
    assert public_key(public_jwk(key)).signed(signature, b"message")
    assert not public_key(public_jwk(key)).signed(signature, b"another")
    assert (await first.ek_certificates(), await first.ek_public()) == ([], b"")
    with pytest.raises(ReportFailure):
        await first.activate(b"", b"")


async def test_a_key_that_others_can_read_or_that_is_damaged_is_not_used(kernel: FakeKernel, tmp_path: Path) -> None:
    await attester(kernel, tmp_path).identity_public()
    path = tmp_path / "identity" / KEY
    path.chmod(0o644)
    with pytest.raises(ReportFailure, match="others"):
        await attester(kernel, tmp_path).identity_public()
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    with pytest.raises(ReportFailure, match="damaged"):
        await attester(kernel, tmp_path).identity_public()
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportFailure):
        await attester(kernel, tmp_path / "file").identity_public()


async def test_a_trust_domain_extends_rtmr_3_and_its_log_says_so(tmp_path: Path) -> None:
    register, event = tmp_path / "rtmr3:sha384", b"an event"
    register.write_bytes(b"")
    (tmp_path / "ccel").write_bytes(event_log([(1, 4, b"")], ("sha384",), filling=b"\xff" * 32))
    log = RuntimeLog(tmp_path / "measured")
    domain = TsmAttester(
        FakeKernel(tmp_path / "report", "tdx_guest"), tmp_path / "identity", ENTROPY, "tdx",
        event_log=tmp_path / "ccel", runtime_register=register, runtime_log=log,
    )  # fmt: skip
    await domain.measure(event)
    assert register.read_bytes() == hashlib.sha384(event).digest()
    carried = parse_log(base64.b64decode((await domain.evidence(DATA))["cc_eventlog"]))
    assert [(log_event.register, log_event.data) for log_event in carried.events] == [(1, b""), (4, event)]


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_where_nothing_can_be_extended_nothing_is_logged(tmp_path: Path, tee: str) -> None:
    kernel = FakeKernel(tmp_path / "report")
    guest = TsmAttester(
        kernel, tmp_path, ENTROPY, tee, runtime_register=tmp_path / "none", runtime_log=RuntimeLog(tmp_path / "log")
    )
    await guest.measure(b"an event")
    assert not (tmp_path / "log").exists()


async def test_programs_of_one_boot_sign_with_one_key_and_the_next_boot_with_another(
    kernel: FakeKernel, tmp_path: Path
) -> None:
    proofs = [await attester(kernel, tmp_path, "tdx").sign_as_boot(b"n") for _ in range(2)]
    keys = {proof.public for proof in proofs if proof is not None}
    assert len(keys) == 1
    key_file = tmp_path / "run" / "boot.key"
    assert key_file.stat().st_mode & 0o777 == 0o600
    running = attester(kernel, tmp_path, "tdx")
    await running.sign_as_boot(b"n")
    key_file.unlink()  # memory is empty after a boot
    later = [await signer.sign_as_boot(b"n") for signer in (running, attester(kernel, tmp_path, "tdx"))]
    assert len({*keys, *(proof.public for proof in later if proof is not None)}) == 2
    jwk = public_jwk(PrivateKey.from_pem(SecretBytes(key_file.read_bytes())))
    assert later[0] is not None
    assert public_key(jwk).signed(later[0].signature, b"n")


async def test_a_key_of_the_boot_that_others_can_read_is_not_taken(kernel: FakeKernel, tmp_path: Path) -> None:
    domain = attester(kernel, tmp_path, "tdx")
    await domain.sign_as_boot(b"n")
    (tmp_path / "run" / "boot.key").chmod(0o644)
    with pytest.raises(ReportFailure, match="read by others"):
        await domain.sign_as_boot(b"n")


async def test_a_report_of_snp_needs_no_key_of_its_boot(kernel: FakeKernel, tmp_path: Path) -> None:
    assert await attester(kernel, tmp_path, "snp").sign_as_boot(b"n") is None
    assert not (tmp_path / "run").exists()
