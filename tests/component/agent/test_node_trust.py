"""An agent and whom its machine believes: told by annotation, in paused pools and on degraded nodes, without a reboot."""

from __future__ import annotations

import base64
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from fastness.agent.apply.node import Agent
from fastness.agent.apply.node_trust import turn_of
from fastness.agent.host.states import File
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kube.errors import Unavailable
from fastness.kube.port import PatchType
from fastness.machineconfig.trust.files import KUBECONFIGS, registry_file
from fastness.machineconfig.trust.node_trust import node_trust
from fastness.protocol.node_trust import NodeTrust
from fastness.runtime.clock import SystemClock
from tests.component.agent.cluster import NODE_NAME, QUICK, Play
from tests.component.agent.directory_machine import file, make_machine, rendered
from tests.embedded.fixtures import Embedded
from tests.unit.machineconfig.build import CERTIFICATE, OTHER_CERTIFICATE, controller_config
from tests.unit.machineconfig.signers import signer
from tests.virtual import SeededEntropy, VirtualClock

OLD = rendered("rendered-worker-old", files=[file("/etc/base.conf", "base\n")])
CONTROLLERS = CONTROLLER_CONFIG.resource
REGISTRY = registry_file("r.example:5000")


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path) -> Play:
    machine = make_machine(tmp_path / "w0")
    machine.host.root.put("/etc/base.conf", File(b"base\n"))
    note = b'{"%s": "rendered-worker-old"}' % names.CURRENT_CONFIG.encode()
    machine.host.root.put(names.NODE_ANNOTATIONS_FILE, File(note))
    play = Play(embedded_server, machine)
    await play.prepare(OLD, current="rendered-worker-old")
    return play


def bundles(text: str) -> list[JsonObject]:
    return [{"file": "r.example..5000", "data": base64.b64encode(text.encode()).decode()}]


async def publish(play: Play, registry: str) -> str:
    """Have the ControllerConfig say so, and tell the node; the name of the document."""
    spec = {
        "imageRegistryBundleData": bundles(registry),
        "kubeAPIServerServingCAData": controller_config()["spec"]["kubeAPIServerServingCAData"],
    }
    stored = await play.admin.patch(CONTROLLERS, "machine-config-controller", {"spec": spec}, PatchType.MERGE)
    name = node_trust(stored, None)[0].name
    await play.annotate(**{names.DESIRED_TRUST: name})
    return name


async def has(play: Play, name: str) -> None:
    await play.until(lambda notes: notes.get(names.CURRENT_TRUST) == name)


def registry(play: Play) -> bytes:
    state = play.machine.host.root.look(REGISTRY)
    return state.content if isinstance(state, File) else b""


async def test_a_change_reaches_a_machine_without_drain_or_reboot_and_is_no_drift(play: Play) -> None:
    first = await publish(play, CERTIFICATE)
    async with play.alive():
        await has(play, first)
        assert registry(play) == CERTIFICATE.encode()
        await has(play, await publish(play, OTHER_CERTIFICATE))
        assert registry(play) == OTHER_CERTIFICATE.encode()
        await play.settled()
    assert (play.machine.power.reasons, play.requests) == ([], [])
    assert set(play.states) == {"Done"}
    assert "NodeTrustWritten" in await play.events()


async def test_a_degraded_node_gets_its_certificates_all_the_same(play: Play) -> None:
    async with play.alive():
        await play.settled()
        play.machine.host.root.put("/etc/base.conf", File(b"changed\n"))
        await play.state("Degraded")
        await has(play, await publish(play, CERTIFICATE))
        assert (await play.notes())[names.STATE] == "Degraded"


WHOLE_BUT_DAMAGED = CERTIFICATE.replace(CERTIFICATE.splitlines()[2], "A" * len(CERTIFICATE.splitlines()[2]))


@pytest.mark.parametrize("text", ["garbage", WHOLE_BUT_DAMAGED], ids=["no certificate", "one that only looks whole"])
async def test_what_cannot_be_read_is_told_and_the_machine_keeps_what_it_has(play: Play, text: str) -> None:
    first = await publish(play, CERTIFICATE)
    async with play.alive():
        await has(play, first)
        await publish(play, text)
        await play.wait_for_event("NodeTrustNotWritten")
        assert registry(play) == CERTIFICATE.encode()
        assert (await play.notes())[names.STATE] == "Done", "configs are not held up by it"
        await has(play, await publish(play, OTHER_CERTIFICATE))


class Trusted:
    """Configs of whoever asks: one document."""

    def __init__(self, trust: NodeTrust) -> None:
        self.document = trust

    async def fetch(self, name: str, overlay: str = "") -> JsonObject:
        raise AssertionError("nobody asks for a config here")

    async def trust(self, pool: str, named: str = "") -> NodeTrust:
        return self.document


@pytest.mark.parametrize(("coming", "restarted"), [("lb", ["kubelet.service", "fastness-agent.service"]), ("", [])])
async def test_a_server_that_is_not_believed_has_those_start_anew_who_read_an_older_authority(
    play: Play, coming: str, restarted: list[str]
) -> None:
    host = play.machine.host
    data = base64.b64encode(CERTIFICATE.encode()).decode()
    host.root.put(KUBECONFIGS[1], File(f"clusters: [{{cluster: {{certificate-authority-data: {data}}}}}]".encode()))
    trust = NodeTrust(kubelet_ca=CERTIFICATE, api_ca=CERTIFICATE + (signer(coming) if coming else ""))
    agent = Agent(play.as_node, host, NODE_NAME, SystemClock(), SeededEntropy(1), QUICK, configs=Trusted(trust))
    notes = {names.DESIRED_TRUST: trust.name, names.CURRENT_CONFIG: "rendered-worker-old"}
    await agent._trust.keep({"metadata": {"annotations": notes}}, ())
    assert play.machine.units.calls == [], "nobody starts anew for a signer of the load balancer alone"

    class Silent:
        in_touch = False

        async def live(self) -> JsonObject:
            raise Unavailable("the API cannot be believed") from ssl.SSLCertVerificationError("unable to get issuer")

    agent._own = Silent()  # type: ignore[assignment]
    await agent._miss_authority()
    calls = [unit for verb, unit in play.machine.units.calls if verb in ("start", "restart")]
    assert calls == restarted


def kubeconfig(play: Play) -> bytes:
    state = play.machine.host.root.look(KUBECONFIGS[1])
    return state.content if isinstance(state, File) else b""


def started(play: Play) -> list[str]:
    return [unit for verb, unit in play.machine.units.calls if verb == "start"]


async def test_a_kubelet_starts_anew_at_its_turn_and_nothing_else_waits_for_it(play: Play) -> None:
    host, clock = play.machine.host, VirtualClock()
    data = base64.b64encode(CERTIFICATE.encode()).decode()
    before = f"clusters: [{{cluster: {{certificate-authority-data: {data}}}}}]".encode()
    host.root.put(KUBECONFIGS[1], File(before))
    trust = NodeTrust(kubelet_ca=CERTIFICATE, api_ca=OTHER_CERTIFICATE, registries={"r.example:5000": CERTIFICATE})
    keeper = agent_at(play, clock, trust)._trust
    node = {"metadata": {"annotations": {names.DESIRED_TRUST: trust.name, names.CURRENT_CONFIG: "rendered-worker-old"}}}
    await keeper.keep(node, ())
    assert keeper.turn == turn_of(NODE_NAME, WINDOW) > 1.0
    assert registry(play) == CERTIFICATE.encode(), "certificates of registries do not wait"
    assert (kubeconfig(play), started(play)) == (before, [])
    assert names.CURRENT_TRUST not in await play.notes(), "it does not have all of it"
    await clock.advance(keeper.turn - 1.0)
    await keeper.keep(node, ())
    assert keeper.turn == pytest.approx(1.0)
    assert started(play) == []
    await clock.advance(1.0)
    await keeper.keep(node, ())
    assert (keeper.turn, started(play)) == (0.0, ["kubelet.service"])
    assert kubeconfig(play) not in (before, b"")
    assert (await play.notes())[names.CURRENT_TRUST] == trust.name
    await keeper.keep(node, ())
    assert started(play) == ["kubelet.service"], "once"


async def test_a_machine_that_does_not_believe_the_api_any_more_waits_for_no_turn(play: Play) -> None:
    host = play.machine.host
    data = base64.b64encode(CERTIFICATE.encode()).decode()
    host.root.put(KUBECONFIGS[1], File(f"clusters: [{{cluster: {{certificate-authority-data: {data}}}}}]".encode()))
    trust = NodeTrust(kubelet_ca=CERTIFICATE, api_ca=OTHER_CERTIFICATE)
    keeper = agent_at(play, VirtualClock(), trust)._trust
    node = {"metadata": {"annotations": {names.DESIRED_TRUST: trust.name, names.CURRENT_CONFIG: "rendered-worker-old"}}}
    await keeper.keep(node, ())
    assert started(play) == []
    await keeper.distrusted()
    await keeper.keep(node, ())
    assert started(play) == ["kubelet.service"]


WINDOW = 300.0


def agent_at(play: Play, clock: VirtualClock, trust: NodeTrust) -> Agent:
    settings = replace(QUICK, kubelet_window=WINDOW)
    return Agent(play.as_node, play.machine.host, NODE_NAME, clock, SeededEntropy(1), settings, configs=Trusted(trust))


def test_turns_are_of_the_name_within_the_window_and_even() -> None:
    turns = [turn_of(f"node-{number}", WINDOW) for number in range(1000)]
    assert turns == [turn_of(f"node-{number}", WINDOW) for number in range(1000)]
    assert all(0 <= turn < WINDOW for turn in turns)
    tenths = [sum(tenth * 30 <= turn < (tenth + 1) * 30 for turn in turns) for tenth in range(10)]
    assert min(tenths) > 60
    assert max(tenths) < 150, "no tenth of the window has more than its share and a half"
