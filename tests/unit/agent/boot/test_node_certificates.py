"""When a machine proves itself for the certificates of its node: at once after it joined, then soon, then ever more seldom."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

from fastness.agent.boot.node_certificates import CLIENT_FILE, FIRST_LOOK, JOINED_LOOK, NodeCertificates
from fastness.crypto.x509 import CertificateAuthority
from fastness.kube.port import Cluster
from tests.unit.kube.virtual import FixedEntropy, VirtualClock
from tests.virtual import SeededEntropy

INTERVAL = 900.0


class Joining(VirtualClock):
    """A clock by which a machine joins after so many seconds."""

    def __init__(self, directory: Path, after: float) -> None:
        super().__init__()
        self.file, self.joins = directory / CLIENT_FILE, self.seconds + after

    async def sleep(self, seconds: float) -> None:
        """Let the time pass, and the kubelet write its file."""
        await super().sleep(seconds)
        if self.seconds >= self.joins and not self.file.exists():
            self.join()

    def join(self) -> None:
        """What the kubelet writes when it has its certificate."""
        authority = CertificateAuthority.create("nodes", self.now(), SeededEntropy(1))
        issued = authority.issue_client("system:node:a", ["system:nodes"], timedelta(hours=1), self.now())
        self.file.write_bytes(issued.certificate.pem)


def unreachable() -> AbstractAsyncContextManager[Cluster]:
    raise AssertionError("a wait asks nobody")


async def test_a_machine_that_joins_while_it_waits_waits_no_longer(tmp_path: Path) -> None:
    clock = Joining(tmp_path, after=20.0)
    began = clock.seconds
    await NodeCertificates(tmp_path, unreachable, clock, FixedEntropy()).wait(INTERVAL)
    assert 20.0 <= clock.seconds - began <= 20.0 + JOINED_LOOK


async def test_one_that_never_joins_proves_itself_at_the_interval(tmp_path: Path) -> None:
    clock = Joining(tmp_path, after=2 * INTERVAL)
    began = clock.seconds
    certificates = NodeCertificates(tmp_path, unreachable, clock, FixedEntropy())
    assert certificates.seconds(INTERVAL) == INTERVAL
    await certificates.wait(INTERVAL)
    assert clock.seconds - began == INTERVAL


async def test_one_that_joined_waits_in_one_piece_and_looks_soon_and_then_seldom(tmp_path: Path) -> None:
    clock = Joining(tmp_path, after=0.0)
    clock.join()
    certificates = NodeCertificates(tmp_path, unreachable, clock, FixedEntropy())
    waits = [certificates.seconds(INTERVAL) for _ in range(10)]
    assert waits[:3] == [FIRST_LOOK, 2 * FIRST_LOOK, 4 * FIRST_LOOK]
    assert waits == sorted(waits)
    assert waits[-1] == INTERVAL
    await certificates.wait(INTERVAL)
    assert clock.slept == [INTERVAL]
