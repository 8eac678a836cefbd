"""The whole cluster is lost while its doors stand outside: they release nothing, say why, and go on when it is restored."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.attestation.test_on_real_kubernetes import _objects
from tests.e2e.attestation.test_one_killed import PORTS, Site
from tests.e2e.live import FASTNESS, run
from tests.node_facts import post_node_facts
from tests.patience import eventually
from tests.realkube import RealKube
from tests.soaking import SOAK
from tests.swtpm import Maker, Swtpm

pytestmark = [
    pytest.mark.processes,
    pytest.mark.soak,
    pytest.mark.skipif(not SOAK, reason="in `make soak`: `make test` restores a cluster without its doors"),
    pytest.mark.long("a real Kubernetes starts twice, and every role once"),
]


@pytest.fixture
def site(bare_kube: RealKube, tpm_maker: Maker, tmp_path: Path) -> Iterator[Site]:
    made = Site(bare_kube, tmp_path)
    made.define()
    assert run(["kubectl", "create", "namespace", "fastness-system"], made.env).code == 0
    tpm_maker.provision("one")
    try:
        made.apply(*_objects(tpm_maker))
        for role in ("controllers", *PORTS):
            made.start(f"{role}-a")
        yield made
    finally:
        made.close()


def readiness(site: Site, role: str) -> tuple[int, str]:
    """What a door says to whoever asks whether it can work."""
    address = re.search(r"http://\S+:\d+", site.doors[f"{role}-a"].announced[0])
    assert address is not None
    answer = httpx.get(f"{address[0]}/readyz", trust_env=False)
    return answer.status_code, answer.text


def told(site: Site, *words: str) -> Any:
    done = run([FASTNESS, *words], site.env, cwd=site.home)
    print(words, done.code, done.out, done.err)
    assert done.code == 0, done.err
    return done


async def test_doors_outside_survive_the_loss_of_their_cluster_and_go_on_when_it_is_restored(
    site: Site, swtpm: Swtpm, tmp_path: Path
) -> None:
    before = await site.boot(swtpm, tmp_path)
    told(site, "vault", "create", "backups.key")
    kubernetes = ("--kubeconfig", str(site.kube.kubeconfig), "--vault", "backups.key")
    told(site, "backup", *kubernetes, "monday.db")

    site.kill("controllers-a")  # what ran in the cluster goes with it
    await asyncio.to_thread(site.kube.lose)
    site.lines.clear()
    waiting = asyncio.create_task(site.boot_again(swtpm, tmp_path))
    print("A", await site.until_it_says("waiting"))
    for role in PORTS:
        code, text = readiness(site, role)
        print("B", role, code, text)

    site.kube.begin_anew()  # not in a thread: its programs end with whoever started them
    await asyncio.sleep(15)
    print("C", site.lines, waiting.done())
    for role in PORTS:
        code, text = readiness(site, role)
        print("C", role, code, text)
    await asyncio.to_thread(site.define)
    await asyncio.sleep(5)
    for role in PORTS:
        code, text = readiness(site, role)
        print("D", role, code, text, site.doors[f"{role}-a"].child.poll())
    print(
        run(
            ["kubectl", "get", "ns,secrets,auditbatches,auditcheckpoints,machines,confidentialclusters", "-A"], site.env
        ).out
    )
    print(told(site, "restore", *kubernetes, "monday.db", "--broker-vault", "vault.json").out)
    with site.kube.client() as admin:
        post_node_facts(admin, site.kube.url)
    await asyncio.to_thread(site.start, "controllers-a")
    print("E", site.lines, waiting.done())
    after = await asyncio.wait_for(waiting, 120)
    assert (after.machine.name, after.body) == (before.machine.name, before.body)
    await asyncio.to_thread(eventually, lambda: all(readiness(site, role)[0] == 200 for role in PORTS), "ready doors")
