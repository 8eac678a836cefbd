"""Two of everything on two nodes, by the chart and its image, while machines boot and parts of it are taken away.

What is asserted is seen from outside: what machines were told, and what the record says, checked by the verifier that everybody
has.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.keys.keyrings import KeySecret
from fastness.keys.mac_keys import MAC_KEYS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.objects import rfc3339
from fastness.kube.port import PatchType
from fastness.release.live.tokens import TOKEN_KEYS
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.bed import Bed
from tests.bed.helm import Helm
from tests.contract.worlds import https
from tests.e2e.bed.site import LONG, Site
from tests.e2e.bed.storm import BOOTED
from tests.e2e.bed.walking import forget
from tests.patience import PATIENCE, eventually
from tests.soaking import in_soak

MACHINES = int(os.environ.get("FASTNESS_STORM", "200"))
CHANGED = max(2, MACHINES // 20)
pytestmark = [pytest.mark.processes, *in_soak("replicas are killed as processes in tests/e2e/attestation")]


async def rotate_keys(site: Site) -> None:
    """Every key that changes by itself is due now, and changes; of authorities the successors are made."""
    for name in ("doors-ca", "internal-ca"):
        site.kubectl.ok("annotate", "secret", name, "fastness.dev/rotate=now", "--overwrite")
    async with https(site.bed.kube.kubeconfig) as cluster:
        for kind in (*MAC_KEYS.values(), TOKEN_KEYS):
            secret = await cluster.get(SECRET.resource, kind.name, NAMESPACE)
            aged = {"data": {"keys": aged_ring(secret["data"]["keys"], kind)}}
            await cluster.patch(SECRET.resource, kind.name, aged, PatchType.MERGE, NAMESPACE)
            ring = await kind.renew(cluster, SystemEntropy(), SystemClock().now())
            assert len(ring) == 2, f"{kind.name} has a new key beside the old one"


def aged_ring(text: str, kind: KeySecret) -> str:
    """A ring whose keys are as old as they may get."""
    document = json.loads(base64.b64decode(text))
    for entry in document["keys"]:
        entry["created"] = rfc3339(SystemClock().now() - kind.lifetime - timedelta(hours=1))
    return base64.b64encode(json.dumps(document).encode()).decode()


@pytest.fixture(scope="module")
def site(bed: Bed, helm_program: Path, fastness_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site")
    forget(bed)
    helm = Helm(helm_program, bed.kube.kubeconfig, NAMESPACE, directory, patience=LONG + PATIENCE)
    made = Site(bed, helm, directory, fastness_image)
    try:
        made.pull()
        made.install()
        yield made
    finally:
        helm.run("uninstall", "fastness")
        made.kubectl.ok("delete", "validatingwebhookconfiguration", "fastness", "--ignore-not-found")
        forget(bed)


class Person:
    """Somebody who changes a guarded object all the time, and does not try again what failed."""

    def __init__(self, bed: Bed) -> None:
        self.bed, self.during, self.lost = bed, "", list[tuple[str, str]]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        path = "/apis/fastness.dev/v1alpha1/confidentialclusters/cluster"
        headers = {"content-type": "application/merge-patch+json"}
        with self.bed.kube.client() as admin:
            while not self._over.wait(0.2):
                change = {"metadata": {"annotations": {"example.com/seen": self.during or "-"}}}
                during = self.during
                try:
                    answer = admin.patch(path, json=change, headers=headers, params={"dryRun": "All"})
                except httpx.TransportError as error:
                    self.lost.append((during, repr(error)))
                    continue
                if not answer.is_success:
                    self.lost.append((during, answer.text))

    def __enter__(self) -> Person:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(LONG)


HAPPENINGS: dict[str, Callable[[Site], None]] = {
    "rotate keys": lambda site: asyncio.run(rotate_keys(site)),
    "kill a pod of each role": Site.kill_pods,
    "drain a node": Site.drain_node,
    "kill a kubelet": Site.kill_kubelet,
    "restart etcd": Site.restart_etcd,
    "upgrade": Site.upgrade,
}
PLANNED = ("", "rotate keys", "drain a node", "upgrade")


@pytest.mark.flaky(reruns=0)  # what was taken away once is a fact about this site
@pytest.mark.parametrize("what", HAPPENINGS)
def test_whatever_happens_refuses_no_machine_and_lets_none_in(site: Site, what: str) -> None:
    asyncio.run(site.prepare_machines(MACHINES + CHANGED))
    first = 10_000 * (1 + list(HAPPENINGS).index(what))
    with site.storm(MACHINES, CHANGED, first), Person(site.bed) as person:
        site.went_on()
        person.during = what
        HAPPENINGS[what](site)
        site.went_on()
        site.until_ready()
        person.during = ""
    # Whoever kills a webhook loses what it was about to answer, and the API server does not ask again.
    lost = [lost for lost in person.lost if lost[0] in PLANNED]
    assert not lost, f"lost while nothing failed: {lost[:5]}"
    check_machines(site)
    check_record(site)


def check_machines(site: Site) -> None:
    """Whoever should has a configuration after every boot, and whoever is changed never has one."""
    boots = site.boots()
    wrong = Counter(boot["outcome"] for boot in boots if not boot["changed"] and boot["outcome"] != BOOTED)
    assert not wrong, f"refused wrongly: {wrong}"
    assert len({boot["serial"] for boot in boots if not boot["changed"]}) == MACHINES
    let_in = [boot for boot in boots if boot["changed"] and boot["outcome"] == BOOTED]
    assert not let_in, f"let in although changed: {let_in}"
    assert len({boot["serial"] for boot in boots if boot["changed"]}) == CHANGED


def check_record(site: Site) -> None:
    """Every boot is on a record that can be proved, with a grant that rests on a verdict; and no release of anybody else's."""
    boots = site.boots()
    granted = Counter(boot["key"] for boot in boots if boot["outcome"] == BOOTED)
    changed = {boot["key"] for boot in boots if boot["changed"]}

    def releases() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            site.fastness("audit", "show", "--what", "release", "--last", "100000", "-o", "json")
        )
        return found

    eventually(lambda: len(releases()) >= granted.total(), "the record holds every boot")
    entries = releases()
    recorded = Counter(entry["who"] for entry in entries)
    assert not granted - recorded, f"released and not recorded: {granted - recorded}"
    assert not changed & recorded.keys()
    assert all(entry.get("grant") and entry.get("verdict") for entry in entries)
    record = site.directory / f"record-{len(entries)}"
    site.fastness("audit", "export", str(record))
    key = site.fastness("audit", "key").strip()
    checked = site.fastness("audit", "verify", str(record), "--key", key)
    assert checked.startswith("good"), checked
