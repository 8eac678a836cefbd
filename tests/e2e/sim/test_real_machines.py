"""`fastness up --vms 1`: a real machine measures its boot and is believed for as long as the flag is given."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fastness.sim.vms.initrd import STAYING
from tests.e2e.live import FASTNESS, Live, environment, run
from tests.e2e.sim.test_restarts import children
from tests.measuredboot.kernel import kernel
from tests.measuredboot.machine import require_machine
from tests.patience import eventually
from tests.soaking import soaking

BOOT_SECONDS = 900.0
DAMAGED_AT = 29 << 20


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
        console = live.state / "vms" / "vm-0" / "console.log"

        def console_text() -> str:
            return console.read_text(errors="replace") if console.exists() else "nothing yet"

        # It boots with the managed user-data of its pool, and Ignition asks through the agent in its image. Until it says that
        # it is done, nobody else is asked: a question every second would take as much of the processor as the emulation.
        end = time.monotonic() + BOOT_SECONDS
        while STAYING not in console_text():
            assert time.monotonic() < end, f"the machine did not boot; its console says: {console_text()[-2000:]}"
            time.sleep(0.2)
        machines = eventually(lambda: attested(live), "a machine that is attested")
        assert machines[0]["status"]["simulated"] is False
        assert machines[0]["status"]["endorsement"]["root"].startswith("sha256:")
        eventually(
            lambda: any(config.startswith("rendered-worker-") for config in released(live)), "the config on the record"
        )
        assert len(roots(live)) == 1
        assert "--vms" in roots(live)[0]
        live.process.kill()
        live.process.wait()
    eventually(
        lambda: not any("qemu" in command or "swtpm" in command for command in children(tmp_path)),
        "the end of the machine with the process that started it",
    )
    with Live.start(tmp_path) as live:
        assert roots(live) == []
        assert live.kubectl("get", "approvedimages", "-n", "fastness-system", "-o", "name").out == ""


def volume(live: Live) -> dict[str, Any]:
    """What is recorded of the real machine's volume; empty before there is one."""
    machines = live.kubectl("get", "machines.trusted-execution-clusters.io", "-n", "fastness-system", "-o", "json").json
    real = (machine for machine in machines["items"] if machine["status"].get("simulated") is False)
    return dict(next((disk for machine in real for disk in machine["status"].get("disks", ())), {}))


def cut_power(home: Path) -> None:
    """End the one machine that was started in a directory, as a power cut does."""
    for entry in (path for path in Path("/proc").iterdir() if path.name.isdigit()):
        with suppress(OSError):
            if (entry / "cwd").resolve() == home.resolve() and b"qemu-system" in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)


def change_a_byte(disk: Path) -> None:
    """What a host does to a sector near the end, where the file system of a small volume has put nothing yet."""
    with disk.open("r+b") as file:
        file.seek(DAMAGED_AT)
        byte = file.read(1)
        file.seek(DAMAGED_AT)
        file.write(bytes([byte[0] ^ 1]))


def heard(console: Path, mark: str, end: float) -> None:
    """Wait until a machine says something on its console."""
    while mark not in (text := console.read_text(errors="replace") if console.exists() else ""):
        assert time.monotonic() < end, f"no {mark}; the console says: {text[-2000:]}"
        time.sleep(1)


@pytest.mark.long("a machine boots three times under emulation, and the control plane starts twice")
@pytest.mark.parametrize(
    "disk",
    [
        {"volume": "var"},
        soaking(
            {"volume": "root", "integrity": "hmac-sha256"},
            why="the same story beside the root; tags and roots each in unit tests and on a real kernel",
        ),
    ],
    ids=lambda disk: disk["volume"],
)
def test_a_real_machine_makes_its_volume_and_opens_it_by_proof_and_not_with_another_command_line(
    tmp_path: Path, disk: dict[str, str]
) -> None:
    require_machine()
    kernel()
    pools = [{"name": "worker", "trustModel": "ConfidentialCluster", "disk": disk}]
    with Live.start(tmp_path, "--machines", "1") as live:
        patch = json.dumps({"spec": {"pools": pools}})
        live.kubectl("patch", "confidentialcluster", "cluster", "--type=merge", "-p", patch)
        live.stop()
    with Live.start(tmp_path, "--vms", "1") as live:
        console, end = live.state / "vms" / "vm-0" / "console.log", time.monotonic() + BOOT_SECONDS
        name = disk["volume"]
        heard(console, f"@@OPENED {name} ", end)
        while volume(live).get("state") != "Open":
            assert time.monotonic() < end, f"its volume is not open: {volume(live)}"
            time.sleep(1)
        assert volume(live)["volume"] == name
        header = volume(live)["header"]
        assert (header["cipher"], header["integrity"]) == ("aes-xts-plain64", disk.get("integrity", "none"))
        place = live.state / "vms" / "vm-0" / "volume"
        content = place.read_bytes()
        assert content.startswith(b"LUKS")
        # Neither the label of its file system nor a path is there in clear, nor what the root was filled with.
        assert not any(word in content[1 << 20 :] for word in (b"fastness", b"PRETTY_NAME"))
        first = volume(live)["generation"]
        cut_power(tmp_path)
        if "integrity" in disk:
            change_a_byte(place)
        heard(console, f"@@OPENED {name} ", end)
        if "integrity" in disk:
            heard(console, "@@DAMAGED", end)
            assert "Input/output error" in console.read_text(errors="replace")
        while volume(live)["generation"] <= first:
            assert time.monotonic() < end, f"its second boot is not recorded: {volume(live)}"
            time.sleep(1)
        second = volume(live)
        # One character of the command line in the image that its host has: it boots, and gets no key.
        image = live.state / "vms" / "image.disk"
        image.write_bytes(image.read_bytes().replace(b"no_timer_check panic=1", b"no_timer_check panic=2"))
        cut_power(tmp_path)
        heard(console, "refused (value-differs)", end)
        assert "@@OPENED" not in console.read_text(errors="replace")
        assert (volume(live)["generation"], volume(live)["released"]) == (second["generation"], second["released"])
