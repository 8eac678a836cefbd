"""The whole cluster is lost while its doors stand outside: they release nothing, say why, and go on when it is restored."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

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


def readiness(site: Site, role: str) -> str:
    """What a door says to whoever asks whether it can work."""
    address = re.search(r"http://\S+:\d+", site.doors[f"{role}-a"].announced[0])
    assert address is not None
    return httpx.get(f"{address[0]}/readyz", trust_env=False).text


async def until_all_say(site: Site, pattern: str) -> None:
    """Every door runs, and says so."""

    def is_told(role: str) -> bool:
        return re.search(pattern, readiness(site, role)) is not None

    for role in PORTS:
        await asyncio.to_thread(eventually, partial(is_told, role), f"{role}: {pattern}")
        assert site.doors[f"{role}-a"].child.poll() is None


def fastness(site: Site, *words: str) -> str:
    done = run([FASTNESS, *words], site.env, cwd=site.home)
    assert done.code == 0, f"fastness {' '.join(words)}: {done.out}{done.err}"
    return done.out


@pytest.mark.flaky(reruns=0)  # what is lost once is lost for this cluster
async def test_doors_outside_survive_the_loss_of_their_cluster_and_go_on_when_it_is_restored(
    site: Site, swtpm: Swtpm, tmp_path: Path
) -> None:
    before = await site.boot(swtpm, tmp_path)
    fastness(site, "vault", "create", "backups.key")
    kubernetes = ("--kubeconfig", str(site.kube.kubeconfig), "--vault", "backups.key")
    fastness(site, "backup", *kubernetes, "monday.db")

    site.kill("controllers-a")  # what ran in the cluster goes with it
    site.kube.lose()
    site.lines.clear()
    waiting = asyncio.create_task(site.boot_again(swtpm, tmp_path))
    assert "the cluster cannot be asked now" in await site.until_it_says("cluster-unavailable")
    await until_all_say(site, "out of touch with the API")

    # Somebody makes a new one, which holds nothing: the doors do not take that for a cluster without machines.
    site.kube.begin_anew()
    await until_all_say(site, "namespace fastness-system is gone")
    await asyncio.to_thread(site.define)
    await until_all_say(site, "namespace fastness-system is gone")
    assert not waiting.done(), "neither let in nor refused: it waits"
    assert "fastness-system" not in run(["kubectl", "get", "namespaces", "-o", "name"], site.env).out

    restored = await asyncio.to_thread(fastness, site, "restore", *kubernetes, "monday.db")
    assert "1 machine and " in restored, restored
    with site.kube.client() as admin:
        post_node_facts(admin, site.kube.url)
    await asyncio.to_thread(site.start, "controllers-a")
    after = await waiting
    assert (after.machine.name, after.body) == (before.machine.name, before.body)
    await until_all_say(site, "^ok$")
    new = await site.boot(swtpm, tmp_path)
    assert new.machine.name == before.machine.name, "its chip is known"
    keys = fastness(site, "audit", "key").split()
    assert len(keys) == 2, "one name of the record for the cluster of before, one for that of now"
    fastness(site, "audit", "export", str(tmp_path / "record"))
    words = [word for key in keys for word in ("--key", key)]
    assert fastness(site, "audit", "verify", str(tmp_path / "record"), *words).startswith("good")
