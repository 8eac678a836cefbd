"""From a ticket to a configuration over real TLS, and everything that may go wrong on the way."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.boot import fetch
from fastness.agent.boot.boot import ATTEMPTS, BootedConfig, BootRefused, BootRequest, boot_once
from fastness.agent.boot.enrol import RetryBudget, once_each
from fastness.agent.boot.fetch import GateRefused
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.user_data import Given, ask_of_host
from fastness.agent.host.tee.configfs_tsm import TsmAttester
from fastness.crypto.digests import sha256
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.formats import json
from fastness.formats.evidence.snp.certificate_table import TableEntry, table
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.client.pool import Answered, HttpsClient
from fastness.kube.port import PatchType, WriteOptions
from fastness.protocol.user_data import VERSION
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from tests.component.agent.host.test_configfs_tsm import FakeKernel
from tests.component.release.delivery.meddler import good, meddling, with_body, without
from tests.delivering import ACCEPT, ENTROPY, DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster) as delivering:
        for tee in ("tpm", "snp", "tdx"):
            await delivering.publish(default_image().reference_values(tee), f"values-{tee}")
        yield delivering


class Restless(MovedClock):
    """A machine's clock that remembers for how long it was asked to wait, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Remember."""
        self.slept.append(seconds)
        assert len(self.slept) < 40, "the machine never stops trying"
        await super().sleep(0.01)


async def booted(world: DeliveringWorld, tee: str = "tpm", clock: MovedClock | None = None) -> BootedConfig:
    return await boot_once(world.machine(tee), await world.ask(), world.trust, world.patience(clock=clock))


@pytest.mark.parametrize(("tee", "source"), [("tpm", "PCR 15"), ("tdx", "RTMR 3"), ("snp", "")])
async def test_what_a_machine_took_from_its_host_stands_in_its_verdict(
    world: DeliveringWorld, tee: str, source: str
) -> None:
    ticket = (await world.ticket()).reveal()
    given = {"version": VERSION, "pool": "worker", "ticket": ticket, "server": world.server}
    machine, patience = world.machine(tee), world.patience()
    ask = await ask_of_host([Given(json.encode(given))], machine, ACCEPT, patience)
    assert (await boot_once(machine, ask, world.trust, patience)).body == world.shelf.body
    (verdict,) = (await world.cluster.list(VERDICT.resource)).items
    assert verdict["spec"]["result"] == "Affirmed"
    taken = [
        (check["result"], check["source"], check["seen"])
        for check in verdict["spec"]["checks"]
        if check["name"] == "user-data"
    ]
    words = f"pool worker, server {world.server}, ticket {sha256(ticket.encode())}"
    assert taken == ([("Pass", source, words)] if source else [])


async def test_a_trust_domain_that_measured_anything_else_is_refused(world: DeliveringWorld) -> None:
    """RTMR 3 may hold user-data and nothing more: the log explains the register, and the policy wants no other event in it."""
    machine = world.machine("tdx")
    await machine.measure(b"something that ran later")
    with pytest.raises(BootRefused):
        await boot_once(machine, await world.ask(), world.trust, world.patience())
    assert world.shelf.requests == []


async def refused(world: DeliveringWorld) -> BootRefused:
    with pytest.raises(BootRefused) as raised:
        await booted(world)
    assert raised.value.hint
    return raised.value


async def test_a_machine_of_each_kind_comes_by_its_configuration(world: DeliveringWorld) -> None:
    for tee in ("tpm", "snp", "tdx"):
        boot = await booted(world, tee)
        assert boot.body == world.shelf.body
        assert boot.machine.pool == "worker"
        assert boot.node_name
    assert world.shelf.requests == [("worker", ACCEPT)] * 3
    assert [entry.what for entry in world.record.entries] == ["release"] * 3


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_a_first_boot_asks_six_times_whatever_else_it_proves(
    world: DeliveringWorld, tee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand machines boot at once: what they prove besides goes along with what they send anyway."""
    requests, ask = [], HttpsClient.ask

    async def counted(client: HttpsClient, method: str, path: str, *rest: Any) -> Answered:
        requests.append((method, path.partition("?")[0]))
        return await ask(client, method, path, *rest)

    monkeypatch.setattr(HttpsClient, "ask", counted)
    await booted(world, tee)
    # Ticket and key, the answer to the challenge; nonce, evidence; the nonce of the gate, the configuration.
    assert requests == [
        ("POST", "/v1/enrol"), ("POST", "/v1/enrol/complete"), ("POST", "/kbs/v0/auth"), ("POST", "/kbs/v0/attest"),
        ("GET", "/config/worker"), ("GET", "/config/worker"),
    ]  # fmt: skip


@pytest.mark.parametrize(("tee", "provider"), [("snp", "sev_guest"), ("tdx", "tdx_guest")])
async def test_a_guest_that_asks_its_kernel_for_reports_comes_by_its_configuration(
    world: DeliveringWorld, tmp_path: Path, tee: str, provider: str
) -> None:
    chip = world.machine(tee).machine
    kernel = FakeKernel(tmp_path / "report", provider)
    if tee == "snp":
        chain = chip.quote(bytes(64))["cert_chain"]
        kernel.auxiliary = table(
            tuple(TableEntry(entry["cert_type"], base64.b64decode(entry["data"])) for entry in chain)
        )
        kernel.report_of = lambda data: base64.b64decode(chip.quote(data)["attestation_report"])
    else:
        kernel.report_of = lambda data: base64.b64decode(chip.quote(data)["quote"])
        (tmp_path / "ccel").write_bytes(base64.b64decode(chip.quote(bytes(64))["cc_eventlog"]))

    def program() -> TsmAttester:
        key = tmp_path / "run" / "boot.key"
        return TsmAttester(kernel, tmp_path / "identity", ENTROPY, tee, event_log=tmp_path / "ccel", boot_key=key)

    guest = program()
    boot = await boot_once(guest, await world.ask(), world.trust, world.patience())
    assert boot.body == world.shelf.body
    again = program()
    assert (await boot_once(again, await world.ask(), world.trust, world.patience())).machine == boot.machine


async def test_settings_of_a_user_do_not_change_how_a_machine_shows_itself(
    world: DeliveringWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert (await booted(world)).body == world.shelf.body


async def test_ten_minutes_of_clock_skew_do_not_keep_a_machine_out(world: DeliveringWorld) -> None:
    for minutes in (-10, 10):
        clock = MovedClock()
        clock.ahead = timedelta(minutes=minutes)
        assert (await booted(world, clock=clock)).body == world.shelf.body


async def test_whoever_sits_between_can_change_nothing(world: DeliveringWorld) -> None:
    async with meddling(world) as meddler:
        assert (await booted(world)).body == world.shelf.body
        earlier = [answer for answer in meddler.answers if good(answer)]
        changes = {
            "body": lambda answer: with_body(answer, world.shelf.body + b" "),
            "of another machine, from before": lambda answer: earlier[0],
            "unsigned": lambda answer: without(answer, b"fastness-signature"),
        }
        for what, change in changes.items():
            meddler.change = lambda answer, change=change: change(answer) if good(answer) else answer  # type: ignore[misc]
            refusal = await refused(world)
            assert refusal.reason in ("signature-invalid", "signature-unreadable"), what
            assert "fastness attest explain machine-" in refusal.hint


async def test_an_answer_that_was_given_before_is_not_taken_again(world: DeliveringWorld) -> None:
    machine, ask = world.machine(), await world.ask()
    async with meddling(world) as meddler:
        await boot_once(machine, ask, world.trust, world.patience())
        [earlier] = [answer for answer in meddler.answers if good(answer)]
        meddler.change = lambda answer: earlier if good(answer) else answer
        with pytest.raises(BootRefused) as raised:
            await boot_once(machine, ask, world.trust, world.patience())
        assert raised.value.reason == "signature-invalid"


async def test_a_signature_that_expired_on_the_way_counts_no_more(world: DeliveringWorld) -> None:
    clock = MovedClock()

    def delayed(answer: bytes) -> bytes:
        clock.ahead = timedelta(minutes=6) if good(answer) else timedelta()
        return answer

    async with meddling(world) as meddler:
        meddler.change = delayed
        with pytest.raises(BootRefused) as raised:
            await booted(world, clock=clock)
        assert raised.value.reason == "signature-expired"


async def test_a_body_that_was_cut_is_asked_for_again(world: DeliveringWorld) -> None:
    cut: list[bytes] = []

    def cutting(answer: bytes) -> bytes:
        if not good(answer) or cut:
            return answer
        cut.append(answer)
        return answer[:-5]

    async with meddling(world) as meddler:
        meddler.change = cutting
        assert (await booted(world)).body == world.shelf.body
    assert len(cut) == 1
    assert len(world.shelf.requests) == 2


async def test_an_image_that_does_not_know_the_key_of_the_cluster_takes_nothing(world: DeliveringWorld) -> None:
    stranger = Ed25519Signer(SecretBytes(b"s" * 32)).verifier
    trust = ImageTrust(world.trust.tls, {stranger.id: stranger})
    with pytest.raises(BootRefused) as raised:
        await boot_once(world.machine(), await world.ask(), trust, world.patience())
    assert raised.value.reason == "signature-key"
    assert "trust.json" in raised.value.hint


async def test_what_will_pass_is_waited_for_longer_each_time(world: DeliveringWorld) -> None:
    world.shelf.refusals = [Refusal(503, "not-rendered", "soon", retry=0) for _ in range(5)]
    clock = Restless()
    patience = RetryBudget(clock, ENTROPY, 3600, pause=1.0)
    assert (await boot_once(world.machine(), await world.ask(), world.trust, patience)).body == world.shelf.body
    assert len(clock.slept) == 5
    for number, pause in enumerate(clock.slept):
        assert max(2**number, 1) <= pause <= 2 * max(2**number, 10)


async def test_a_machine_that_waits_says_what_for_and_says_it_once(world: DeliveringWorld) -> None:
    gone = [Refusal(503, "config-server-unreachable", "the config server does not answer", retry=0) for _ in range(3)]
    world.shelf.refusals = [*gone, Refusal(503, "not-rendered", "soon", retry=0)]
    lines: list[str] = []
    patience = RetryBudget(Restless(), ENTROPY, 3600, pause=1.0, tell=once_each(lines.append))
    await boot_once(world.machine(), await world.ask(), world.trust, patience)
    assert [words.partition(":")[0] for words in lines] == [
        "waiting for the configuration (config-server-unreachable)",
        "waiting for the configuration (not-rendered)",
    ]
    assert "the config server does not answer" in lines[0]


async def test_at_the_end_of_patience_the_last_answer_is_the_reason(world: DeliveringWorld) -> None:
    world.name_gate("https://127.0.0.1:9")
    with pytest.raises(GateRefused) as raised:
        await boot_once(world.machine(), await world.ask(), world.trust, world.patience(0.3))
    assert (raised.value.reason, raised.value.passing) == ("unreachable", True)


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_a_refusal_of_the_gate_is_final(world: DeliveringWorld, status: int) -> None:
    world.shelf.refusals = [Refusal(status, "some-code", "because")]
    refusal = await refused(world)
    assert refusal.reason == "some-code"
    assert "because" in refusal.message
    assert len(world.shelf.requests) == 1


async def test_a_gate_that_believes_no_token_is_asked_a_few_times(world: DeliveringWorld) -> None:
    async with meddling(world) as meddler:
        meddler.change = lambda answer: without(answer, b"dpop-nonce")
        clock = Restless()
        patience = RetryBudget(clock, ENTROPY, 3600, pause=0.01)
        with pytest.raises(BootRefused) as raised:
            await boot_once(world.machine(), await world.ask(), world.trust, patience)
    assert raised.value.reason == "no-proof"
    assert len(clock.slept) == ATTEMPTS - 1
    assert world.shelf.requests == []


async def test_a_changed_image_is_refused_and_the_operator_knows_what_to_run(world: DeliveringWorld) -> None:
    image = changed(default_image(), command_line="debug")
    with pytest.raises(BootRefused) as raised:
        await boot_once(world.machine(image=image), await world.ask(), world.trust, world.patience())
    assert raised.value.reason == "value-differs"
    assert "fastness attest explain machine-" in raised.value.hint
    assert world.shelf.requests == []


async def test_a_bad_ticket_is_final_and_names_the_remedy(world: DeliveringWorld) -> None:
    ask = BootRequest("worker", SecretText("nobody-made-this"), world.server)
    with pytest.raises(BootRefused) as raised:
        await boot_once(world.machine(), ask, world.trust, world.patience())
    assert raised.value.reason == "ticket-required"
    assert "user-data" in raised.value.hint
    ask = BootRequest("master", (await world.ask()).ticket, world.server)
    with pytest.raises(BootRefused) as raised:
        await boot_once(world.machine(), ask, world.trust, world.patience())
    assert raised.value.reason == "wrong-pool"


async def test_user_data_leads_no_machine_to_a_server_that_its_image_forbids(world: DeliveringWorld) -> None:
    trust = json.decode(world.trust_json) | {"origin": "https://cluster.example"}
    with pytest.raises(BootRefused) as refusal:
        await boot_once(world.machine(), await world.ask(), ImageTrust.parse(json.encode(trust)), world.patience())
    assert refusal.value.reason == "server-not-believed"


@pytest.mark.parametrize("urls", [DoorUrls(), DoorUrls("https://127.0.0.1:1", ""), DoorUrls("http://127.0.0.1:1")])
async def test_without_doors_there_is_nowhere_to_go(world: DeliveringWorld, urls: DoorUrls) -> None:
    world.urls[0] = urls
    assert (await refused(world)).reason == "no-doors"


async def test_an_answer_without_end_is_not_read_to_its_end(
    world: DeliveringWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MAX_CONFIG", 10)
    with pytest.raises(GateRefused) as raised:
        await boot_once(world.machine(), await world.ask(), world.trust, world.patience(0.2))
    assert raised.value.reason == "answer-too-long"


async def test_a_way_that_is_switched_under_way_is_learnt_by_enrolling_again(world: DeliveringWorld) -> None:
    clusters = world.informers.of(CONFIDENTIAL_CLUSTER.resource)

    class Switching(Restless):
        """Whoever waits because there is no config yet finds the other way chosen afterwards."""

        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            if len(self.slept) == 1:
                patch = {"spec": {"delivery": {"via": "Broker"}}}
                await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
                await until(lambda: (clusters.get("", "cluster") or {})["spec"]["delivery"]["via"] == "Broker")

    world.shelf.refusals = [Refusal(503, "not-rendered", "soon")]
    clock = Switching()
    patience = RetryBudget(clock, ENTROPY, 3600, pause=0.01)
    boot = await boot_once(world.machine(), await world.ask(), world.trust, patience)
    assert boot.body == world.shelf.body
    assert boot.machine.doors is not None
    assert boot.machine.doors.via == "Broker"


async def test_a_machine_that_had_to_give_way_enrols_again_by_itself(world: DeliveringWorld) -> None:
    machines = world.informers.of(MACHINE.resource)

    class Robbed(SimAttester):
        """Its Machine is deleted once, between enrolment and evidence."""

        robbed = 0

        async def evidence(self, report_data: bytes) -> JsonObject:
            if not self.robbed:
                self.robbed = 1
                (stored,) = (await world.cluster.list(MACHINE.resource)).items
                await world.cluster.delete(MACHINE.resource, stored["metadata"]["name"], NAMESPACE)
                await until(lambda: not machines.list())
            return await super().evidence(report_data)

    attester = Robbed(world.machine("snp").machine)
    boot = await boot_once(attester, await world.ask(), world.trust, world.patience(clock=Restless()))
    assert (attester.robbed, boot.body) == (1, world.shelf.body)
    (left,) = (await world.cluster.list(MACHINE.resource)).items
    assert left["metadata"]["uid"] == boot.machine.machine


async def approve(world: DeliveringWorld) -> None:
    """What an operator and the controller behind it write."""
    (machine,) = (await world.cluster.list(MACHINE.resource)).items
    name, resource = machine["metadata"]["name"], MACHINE.resource
    others = [condition for condition in machine["status"]["conditions"] if condition["type"] != "Approved"]
    now = f"{world.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    approved = {"type": "Approved", "status": "True", "reason": "ByOperator", "message": "", "lastTransitionTime": now}
    await world.cluster.patch(resource, name, {"spec": {"approval": "Approved"}}, PatchType.MERGE, NAMESPACE)
    status = {"status": {"conditions": [*others, approved]}}
    await world.cluster.patch(resource, name, status, PatchType.MERGE, NAMESPACE, WriteOptions(subresource="status"))


async def test_a_machine_waits_for_its_approval(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "join": {"approval": "Manual"}}
    async with delivering_world(embedded_server.cluster, spec) as world:
        await world.publish(default_image().reference_values("tpm"))

        class Approving(Restless):
            async def sleep(self, seconds: float) -> None:
                await super().sleep(seconds)
                if len(self.slept) == 2:
                    await approve(world)

        clock = Approving()
        patience = RetryBudget(clock, ENTROPY, 3600, pause=0.05)
        boot = await boot_once(world.machine(), await world.ask(), world.trust, patience)
        assert boot.machine.state == "Pending"
        assert boot.body == world.shelf.body
        assert len(clock.slept) >= 2
