"""Everything ends at once without warning, and starts again: all machines are known, attested and ready, without hands."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.e2e.attestation.test_confidential_cluster import Confidential
from tests.e2e.live import Live
from tests.patience import eventually

MACHINES = 5


def test_after_the_power_failed_everywhere_all_machines_are_attested_and_ready_again(tmp_path: Path) -> None:
    live = Live.start(tmp_path, "--machines", str(MACHINES))
    first = Confidential(live)
    try:
        eventually(lambda: len(first.nodes()) == MACHINES and first.attested() == MACHINES, "attested nodes")
        before = sorted(machine["metadata"]["uid"] for machine in first.machines())
        nodes, proved = sorted(first.nodes()), _proved(first)
    finally:
        live.stop(signal.SIGKILL)
    with Live.start(tmp_path, "--machines", str(MACHINES)) as again:
        second = Confidential(again)
        eventually(
            lambda: sorted(second.nodes()) == nodes and second.attested() == MACHINES, "the same nodes, attested"
        )
        assert sorted(machine["metadata"]["uid"] for machine in second.machines()) == before
        eventually(lambda: all(_proved(second)[name] > at for name, at in proved.items()), "new proofs of all machines")
        assert all(machine["status"]["simulated"] for machine in second.machines())
        record = second.fastness("audit", "show", "-o", "json")
        assert [entry["what"] for entry in record.json].count("enrol") == MACHINES


def _proved(cluster: Confidential) -> dict[str, str]:
    return {machine["metadata"]["name"]: machine["status"]["lastAttested"] for machine in cluster.machines()}
