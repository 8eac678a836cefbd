"""A virtual machine's volume, watched from outside: made by proof, opened by proof, and by nobody else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.live import Live
from tests.e2e.sim.test_faults import Hall
from tests.patience import PATIENCE

MACHINES = "machines.trusted-execution-clusters.io"
POOL = {"name": "worker", "trustModel": "ConfidentialCluster", "disk": {"volume": "var"}}
NAME = "worker-1"


class Site(Hall):
    """A simulation whose second machine has a volume."""

    def machine(self) -> dict[str, Any]:
        listed = self.live.kubectl("get", MACHINES, "-n", "fastness-system", "-o", "json").json["items"]
        return next((each for each in listed if (each["status"].get("disks") or [{}])[0].get("unlockedAt")), {})

    def disk(self) -> dict[str, Any]:
        return dict((self.machine().get("status", {}).get("disks") or [{}])[0])

    def generation(self) -> int:
        """The number of the opening that is recorded."""
        return int(self.disk().get("generation") or 0)

    def is_open(self, *, since: int) -> bool:
        """Whether the volume was opened and reported after that opening."""
        return self.disk().get("state") == "Open" and self.generation() > since

    def console(self) -> str:
        return str(self.machines()[NAME]["console"])

    def sealed(self) -> bytes:
        return (self.live.state / "machines" / NAME / "volumes" / "var.sealed").read_bytes()


def until(holds: Callable[[], bool], site: Site, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"{what}: {site.console()} {json.dumps(site.disk())}"
        time.sleep(0.1)


def test_a_volume_is_opened_by_its_machine_as_it_should_boot_and_by_nothing_else(tmp_path: Path) -> None:
    with Live.start(tmp_path, "--machines", "1") as live:
        site = Site(live)
        patch = json.dumps({"spec": {"pools": [POOL]}})
        live.kubectl("patch", "confidentialcluster", "cluster", "--type=merge", "-p", patch)
        site.ask("add", count=1, tee="tdx")
        until(lambda: site.is_open(since=0), site, "the first boot makes it")
        assert json.loads(site.sealed())["simulated"] is True

        recorded = site.generation()
        site.ask("reboot", machine=NAME)
        until(lambda: site.is_open(since=recorded), site, "a reboot opens it")

        recorded, released = site.generation(), site.disk()["released"]
        site.do("changed-boot-loader", NAME)
        until(lambda: "refused" in site.console(), site, "a changed boot loader gets no key")
        assert (site.generation(), site.disk()["released"]) == (recorded, released)
        site.undo(f"{NAME}.changed-boot-loader")
        until(lambda: site.is_open(since=recorded), site, "as it should boot it opens again")

        recorded = site.generation()
        site.do("swapped-volume", NAME)
        until(lambda: "disk-exchanged" in site.console(), site, "another volume is not opened")
        site.undo(f"{NAME}.swapped-volume")
        until(lambda: site.is_open(since=recorded), site, "its own opens")

        recorded = site.generation()
        site.do("old-volume", NAME)
        until(lambda: "doubtful" in site.disk(), site, "an old state is noticed")
        # A host that lets the copy boot until a count would be high enough: it stays what it is.
        for _ in range(2):
            released = site.disk()["released"]
            site.ask("reboot", machine=NAME)
            until(lambda released=released: site.disk()["released"] > released, site, "it boots again")  # type: ignore[misc]
            until(lambda: "disk-rolled-back" in site.console(), site, "and is refused again")
        assert (site.generation(), "doubtful" in site.disk()) == (recorded, True)
        assert not site.attested(NAME)
        site.undo(f"{NAME}.old-volume")
        until(lambda: site.is_open(since=recorded), site, "the machine's own state counts again")

        name = site.machine()["metadata"]["name"]
        live.kubectl("annotate", MACHINES, "-n", "fastness-system", name, "fastness.dev/rekey-disk=var")
        until(lambda: bool(site.disk().get("nextKeyId")), site, "a new key is made")
        recorded = site.generation()
        site.ask("reboot", machine=NAME)
        until(
            lambda: site.is_open(since=recorded) and site.disk()["keyId"] == "k2", site, "the reboot exchanges the keys"
        )
        assert list(json.loads(site.sealed())["slots"]) == ["k2"]
