"""The chart on a bed of two nodes with the image of this tree: what it costs to be there, and what a second gate brings.

    helm install        CPU of our own processes until every Deployment is ready
    at rest             CPU and memory of each controller with 500 machines
    a storm             200 machines boot at once, with one gate and with two: the ratio of the times, from one run
    API requests        of one attestation, counted at the port; of a whole boot, as the API server counts those for our kinds

Our own processes are found by their command line in the control groups of the bed; kubelets, containers' shims and the API server
are not ours. On two processors, machines, nodes and doors share them: there the ratio says what a second gate costs, and what it
brings only where it has a processor of its own.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.accounting import cpu_seconds, resident_bytes
from bench.figures import Progress, Single, Spread
from bench.targets import TargetError
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemEntropy
from tests.bed import Bed, name_server
from tests.bed.helm import Helm
from tests.bed.kubectl import Kubectl
from tests.bed.prerequisites import needs_of_kernel, needs_of_user
from tests.contract.worlds import https
from tests.counting import attestations_of_one_machine
from tests.e2e.bed.site import LONG, ROOT, Site
from tests.e2e.bed.storm import BOOTED, BOOTS, ENOUGH
from tests.release.fixtures import pushed
from tools.realkube import CHARTS, DNS, locate
from tools.release import image

MACHINES = 500
STORM = int(os.environ.get("FASTNESS_STORM", "200"))
IDLE_SECONDS = 20.0
MOST_WINDOWS = 12
MIB = 1024 * 1024
GROUPS = ("fastness.dev", "trusted-execution-clusters.io")


def figures(say: Progress) -> list[Single]:
    """All of it; raises TargetError."""
    with tempfile.TemporaryDirectory(prefix="fastness-chart-") as text, _bed(Path(text)) as site:
        say("helm install")
        site.pull()
        site.install()
        spent = cpu_seconds(_own(site.bed))
        asyncio.run(site.prepare_machines(2 * STORM))
        with _counting(site.bed) as requests:
            with_one, with_two = _storms(site, say)
        say(f"idle with {MACHINES} machines")
        asyncio.run(_fill(site, MACHINES))
        idle, memory = _at_rest(site.bed)
    return [
        Single("helm install until all is ready, CPU of our own processes", Spread.of([spent]), "s", 12.0),
        Single(f"controllers at rest with {MACHINES} machines, CPU of the busier", Spread.of([max(idle)]), "ms per s", 15.0),
        Single(f"controllers at rest with {MACHINES} machines, memory of the larger", Spread.of([max(memory)]), "MiB", 120.0),
        Single(f"storm of {STORM} on two nodes, two gates over one, time", Spread.of([with_two / with_one]), "×"),
        Single(f"storm of {STORM} on two nodes, two gates: time", Spread.of([with_two]), "s"),
        Single("API requests of one attestation", Spread.of(asyncio.run(_of_attestations())), "", 6.0),
        Single(
            "API requests for our kinds per boot of a storm, enrolment, release and controllers included",
            Spread.of([sum(requests.values()) / (2 * STORM)]), "",
        ),
    ]  # fmt: skip


async def _of_attestations() -> list[float]:
    """How often one attestation asks the API: the first of a machine, and the next."""
    with tempfile.TemporaryDirectory(prefix="fastness-requests-") as place:
        async with open_apiserver(ServerOptions(Path(place) / "state"), PRODUCT) as server:
            return [float(requests.total()) for requests in await attestations_of_one_machine(server.cluster)]


@contextmanager
def _counting(bed: Bed) -> Iterator[Counter[str]]:
    """What the API server answers for our kinds while the block runs, by verb and kind; complete when it ends."""
    counted = Counter[str]()
    before = _answered(bed)
    yield counted
    counted.update(_answered(bed) - before)


def _answered(bed: Bed) -> Counter[str]:
    with bed.kube.client() as admin:
        exposition = admin.get("/metrics").text
    answered = Counter[str]()
    for line in exposition.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if labels["group"] in GROUPS and labels["verb"] != "WATCH":
            answered[f"{labels['verb']} {labels['resource']}"] += int(float(line.rpartition(" ")[2]))
    return answered


@contextmanager
def _bed(directory: Path) -> Iterator[Site]:
    need = needs_of_user() or needs_of_kernel(directory)
    if need:
        raise TargetError(need)
    kubernetes, dns, charts = locate(os.environ), locate(os.environ, DNS), locate(os.environ, CHARTS)
    if kubernetes is None or dns is None or charts is None:
        raise TargetError("the programs of a bed are missing")
    (directory / "bed").mkdir()
    with Bed.start(directory / "bed", kubernetes) as bed:
        name_server.start(Kubectl(bed.kube.kubeconfig, "kube-system"), bed.registry, dns / "coredns")
        built = image.build(image.SERVER, directory / "layout", image.image_cache(os.environ))
        helm = Helm(charts / "helm", bed.kube.kubeconfig, NAMESPACE, directory, patience=LONG)
        yield Site(bed, helm, directory, pushed(bed, built))


def _own(bed: Bed, role: str = "") -> list[int]:
    """Processes of `fastness serve` on this bed, of one role or of all."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            groups = (place / "cgroup").read_text()
        except OSError:
            continue  # it ended while it was looked at
        if b"serve" in words and bed.name in groups and (not role or f"--roles={role}".encode() in words):
            found.append(int(place.name))
    return found


def _at_rest(bed: Bed) -> tuple[list[float], list[float]]:
    """CPU (ms per s) and memory (MiB) of each controller, when what came before has been worked off.

    A window that is dearer than the one after it was none of rest: five hundred machines that are new keep controllers busy for a
    minute, and how long depends on the machine that this runs on.
    """
    pids, last = _own(bed, "controllers"), float("inf")
    for _ in range(MOST_WINDOWS):
        idle = _window(pids)
        if sum(idle) > 0.8 * last:
            break
        last = sum(idle)
    return idle, [resident_bytes([pid]) / MIB for pid in pids]


def _window(pids: list[int]) -> list[float]:
    before = [cpu_seconds([pid]) for pid in pids]
    time.sleep(IDLE_SECONDS)
    return [1000 * (cpu_seconds([pid]) - start) / IDLE_SECONDS for pid, start in zip(pids, before, strict=True)]


def _storms(site: Site, say: Progress) -> tuple[float, float]:
    """Seconds of a storm with one gate, and with two."""
    seconds = []
    for gates in (1, 2):
        site.kubectl.ok("scale", "deployment/fastness-gate", f"--replicas={gates}")
        site.until_ready()
        say(f"{STORM} machines boot, {gates} of the gate")
        seconds.append(_storm(site, 1000 * gates))
    return seconds[0], seconds[1]


def _storm(site: Site, first: int) -> float:
    (site.directory / BOOTS).unlink(missing_ok=True)
    (site.directory / ENOUGH).touch()  # each boots once
    words = site.storm_command("--machines", str(STORM), "--changed", "0", "--first", str(first))
    begun = time.monotonic()
    subprocess.run(words, cwd=ROOT, check=True)
    spent = time.monotonic() - begun
    refused = [boot for boot in site.boots() if boot["outcome"] != BOOTED]
    if refused:
        raise TargetError(f"{len(refused)} of {STORM} machines got nothing: {refused[0]}")
    return spent


async def _fill(site: Site, count: int) -> None:
    """Machines that exist and do nothing, up to so many in all."""
    async with https(site.bed.kube.kubeconfig) as cluster:
        machines = (await cluster.list(MACHINE.resource)).items
        pattern, options = machines[0], WriteOptions(subresource="status")
        for number in range(count - len(machines)):
            name = f"machine-idle-{number:05}"
            meta = {"name": name, "namespace": NAMESPACE}
            spec = {**pattern["spec"], "id": SystemEntropy().uid()}
            body = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": meta, "spec": spec}
            await cluster.create(MACHINE.resource, body)
            status = {
                **pattern["status"],
                "keyThumbprint": f"sha256:{number:064x}",
                "nodeName": f"idle-{number}",
            }
            await cluster.patch(MACHINE.resource, name, {"status": status}, PatchType.MERGE, NAMESPACE, options)
