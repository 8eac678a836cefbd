"""`fastness up --vms 1`: a real machine measures its boot and is believed for as long as the flag is given."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.live import FASTNESS, Live, environment, run
from tests.e2e.sim.test_restarts import children
from tests.measuredboot.kernel import kernel
from tests.measuredboot.machine import require_machine
from tests.patience import PATIENCE

BOOT_SECONDS = 900.0


def attested(live: Live) -> list[dict[str, object]]:
    """The machines that proved themselves."""
    machines = live.kubectl("get", "machines.trusted-execution-clusters.io", "-n", "fastness-system", "-o", "json").json
    return [
        machine
        for machine in machines["items"]
        if any(
            condition["type"] == "Attested" and condition["status"] == "True"
            for condition in machine["status"].get("conditions", ())
        )
    ]


def roots(live: Live) -> list[str]:
    """The reasons of the roots that are trusted beside the vendors'."""
    spec = live.kubectl("get", "confidentialcluster", "cluster", "-o", "json").json["spec"]
    return [entry["reason"] for entry in spec.get("attestation", {}).get("extraRoots", ())]


def released(live: Live) -> list[str]:
    """What left for machines, as the record says."""
    env = environment(live.home, KUBECONFIG=str(live.kubeconfig))
    entries = run([FASTNESS, "audit", "show", "--what", "release", "-o", "json"], env, cwd=live.home).json
    return [str(entry["detail"].get("config", "")) for entry in entries]


@pytest.mark.row("002-30")
@pytest.mark.long("a machine boots under emulation, and the control plane starts twice")
def test_a_real_machine_is_attested_and_its_root_is_trusted_as_long_as_the_flag_is_given(tmp_path: Path) -> None:
    require_machine()
    kernel()
    with Live.start(tmp_path, "--vms", "1") as live:
        assert any("real ones   1" in line for line in live.announced)
        end = time.monotonic() + BOOT_SECONDS
        console = live.state / "vms" / "vm-0" / "console.log"
        while not (machines := attested(live)):
            tail = console.read_text(errors="replace")[-2000:] if console.exists() else "nothing yet"
            assert time.monotonic() < end, f"no machine is attested; the console says: {tail}"
            time.sleep(1)
        assert machines[0]["status"]["simulated"] is False  # type: ignore[index]
        assert machines[0]["status"]["endorsement"]["root"].startswith("sha256:")  # type: ignore[index]
        # It boots with the managed user-data of its pool, and Ignition asks through the agent in its image.
        while not any(config.startswith("rendered-worker-") for config in released(live)):
            assert time.monotonic() < end, (
                f"no config left for it; the console says: {console.read_text(errors='replace')[-2000:]}"
            )
            time.sleep(1)
        assert len(roots(live)) == 1
        assert "--vms" in roots(live)[0]
        live.process.kill()
        live.process.wait()
    end = time.monotonic() + PATIENCE
    while any("qemu" in command or "swtpm" in command for command in children(tmp_path)):
        assert time.monotonic() < end, "a machine outlived the process that started it"
        time.sleep(0.1)
    with Live.start(tmp_path) as live:
        assert roots(live) == []
        assert live.kubectl("get", "approvedimages", "-n", "fastness-system", "-o", "name").out == ""
