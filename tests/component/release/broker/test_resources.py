"""Reading resources: who, what, in which order, and what is on the record."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fastness.attestation.live.attempt import Judgement
from fastness.attestation.policy.cases import proven_by_nothing
from fastness.attestation.policy.query import ActivePolicy, Answer, Decision, Query, drive
from fastness.attestation.policy.resource_policy import Request, ResourcePolicies
from fastness.keys.authorities import SECRETS
from fastness.kinds.confidentialcontainers.broker import KBS_CONFIG
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.resource_binding import RESOURCE_BINDING
from fastness.kube.events import EVENTS
from fastness.kube.port import PatchType, WriteOptions
from fastness.protocol.kbs_path import ResourcePath
from fastness.record.entry import RecordEntry
from fastness.release.live.resources import SEALED_NAMESPACE, resource_name
from tests.component.release.broker.brokered_cluster import BrokeredCluster, brokered_cluster, subject, until, verdict

Made = TypeVar("Made")

STATUS = "default/attestation-status/status"
TRICKS = [
    "machine/../x", "machine/%2e%2e/x", "machine/%252e%252e/x", "machine//x", "machine/x", "machine/x/y/z", "machine/x/y%2fz",
    "machine/x/%5cy", "machine/x/y%00", "machine/x/y;z", "machine/x/Y", "machine/x/%c0%ae", "machine/x/%ef%bc%8e",
    "machine/x/y%0a", "machine/x/" + "y" * 129, "machine/x/...", "machine/./x", "machine/x/*", "machine/x/%80", "machine/x/y:z",
]  # fmt: skip


async def _attested(here: BrokeredCluster, **who: Any) -> Any:
    guest = await here.guest(subject(**who))
    assert (await guest.attest()).status_code == 200
    return guest


async def test_machine_a_reads_its_own_and_never_that_of_machine_b(here: BrokeredCluster) -> None:
    a, b = await _attested(here, name="a"), await _attested(here, name="b")
    for who in (a, b):
        await here.put(f"machine/{who.who.machine}/key", who.who.name.encode())
    assert await a.read(f"machine/{a.who.machine}/key") == b"machine-a"
    answer = await a.get(f"machine/{b.who.machine}/key")
    assert (answer.status_code, answer.json()["code"]) == (403, "other-machine")


async def test_pools_tenants_and_bindings_open_what_they_name(here: BrokeredCluster) -> None:
    red = await _attested(here, name="a", pool="worker", tenant="red")
    blue = await _attested(here, name="b", pool="infra", tenant="blue")
    for path in ("pool/worker/key", "tenant/red/key", "default/db/password"):
        await here.put(path, path.encode())
    assert await red.read("pool/worker/key") == b"pool/worker/key"
    assert await red.read("tenant/red/key") == b"tenant/red/key"
    assert (await blue.get("pool/worker/key")).status_code == 403
    assert (await blue.get("tenant/red/key")).status_code == 403
    assert (await red.get("default/db/password")).json()["code"] == "not-bound"
    await here.bind("db", "default/db/*", pools=["worker"])

    async def opened() -> bool:
        return bool((await red.get("default/db/password")).status_code == 200)

    await until(opened)
    assert (await blue.get("default/db/password")).status_code == 403


async def test_a_binding_that_goes_while_the_record_is_written_opens_nothing_any_more(
    here: BrokeredCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    red, other = await _attested(here, name="a"), await _attested(here, name="b")
    await here.put("default/db/password", b"secret")
    await here.bind("db", "default/db/*", pools=["worker"])

    async def opens(status: int) -> bool:
        return bool((await other.get("default/db/password")).status_code == status)

    await until(lambda: opens(200))
    here.ledger.entries.clear()
    write, happened = here.ledger.append, list[str]()

    async def append(entry: RecordEntry) -> None:
        await write(entry)
        if not happened:
            happened.append(entry.what)
            await here.cluster.delete(RESOURCE_BINDING.resource, "db")
            await until(lambda: opens(403))

    monkeypatch.setattr(here.ledger, "append", append)
    answer = await red.get("default/db/password")
    assert (answer.status_code, answer.json()["code"]) == (403, "not-bound")
    mine = [entry for entry in here.ledger.entries if entry.who == red.who.thumbprint]
    assert [(entry.what, entry.detail.get("code")) for entry in mine] == [
        ("release", None), ("withheld", "not-bound"), ("refusal", "not-bound"),
    ]  # fmt: skip


async def test_what_is_not_there_is_told_only_to_whom_it_would_belong(here: BrokeredCluster) -> None:
    guest = await _attested(here)
    assert (await guest.get(f"machine/{guest.who.machine}/nothing")).status_code == 404
    assert (await guest.get("machine/ffffffff-0000-4000-8000-000000000000/nothing")).status_code == 403
    assert (await guest.get("default/nothing/there")).status_code == 403


async def test_a_broker_without_a_config_server_has_no_configurations(here: BrokeredCluster) -> None:
    guest = await _attested(here)
    answer = await guest.get(f"pool/{guest.who.pool}/config", params={"nonce": "n" * 24})
    assert (answer.status_code, answer.json()["code"]) == (404, "no-such-resource")


async def test_paths_that_play_tricks_open_nothing(here: BrokeredCluster) -> None:
    guest = await _attested(here)
    for path in TRICKS:
        answer = await guest.get(path)
        assert answer.status_code in (400, 403, 404), path
    assert [entry for entry in here.ledger.entries if entry.what == "release"] == []


async def test_without_a_session_nobody_learns_anything(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await here.put(f"machine/{guest.who.machine}/key", b"secret")
    for path in (STATUS, f"machine/{guest.who.machine}/key", "default/nothing/there"):
        answer = await guest.get(path)
        assert (answer.status_code, answer.json()["code"]) == (401, "no-session")


async def test_nothing_leaves_when_the_record_cannot_be_written(here: BrokeredCluster) -> None:
    guest = await _attested(here)
    here.ledger.broken = True
    answer = await guest.get(STATUS)
    assert (answer.status_code, answer.json()["code"]) == (503, "record-failed")
    assert "retry-after" in answer.headers
    here.ledger.broken = False
    assert await guest.read(STATUS) == b"success"


async def test_a_revoked_machine_gets_nothing_although_its_session_lives(here: BrokeredCluster) -> None:
    guest = await _attested(here)
    here.revoked.machines.add(guest.who.machine)
    answer = await guest.get(STATUS)
    assert (answer.status_code, answer.json()["code"]) == (403, "revoked")


async def test_a_policy_can_take_away_and_sees_what_it_judges(tmp_path: Path) -> None:
    never = ActivePolicy("never", "*/*/*", "package policy\nallow if input.submods.cpu0 == data.plugin", "1")
    queries: list[Query] = []

    class Never:
        current = ResourcePolicies([never])

        async def decide(self, decision: Decision[Made]) -> Made:
            return drive(decision, refuse)

    def refuse(query: Query) -> Answer:
        queries.append(query)
        return Answer(value=False)

    async with brokered_cluster(tmp_path / "state", policies=Never()) as here:
        guest = await _attested(here)
        answer = await guest.get(f"{STATUS}?plain=1")
        assert (answer.status_code, answer.json()["code"]) == (403, "policy-denied")
        denied = await guest.get("default/not/bound")
        assert denied.json()["code"] == "not-bound", "code comes before policy"
    (query,) = queries
    assert query.data == Request(tuple(STATUS.split("/")), query={"plain": "1"}).as_json()
    assert query.input["submods"]["cpu0"]["ear.status"] == "affirming"


async def test_the_built_in_policy_asks_for_an_affirmed_machine(here: BrokeredCluster) -> None:
    here.judge.answer = Judgement(True, "", "", subject(), verdict(), {"executables": 33, "hardware": 2})
    guest = await _attested(here)
    answer = await guest.get(STATUS)
    assert (answer.status_code, answer.json()["code"]) == (403, "policy-denied")


async def test_an_active_policy_of_an_operator_judges_without_a_restart(here: BrokeredCluster) -> None:
    guest = await _attested(here)
    assert (await guest.get(STATUS)).status_code == 200
    rego = 'package policy\nimport rego.v1\ndefault allow := false\nallow if data["resource-path"][0] == "machine"\n'
    made = {
        "apiVersion": "fastness.dev/v1alpha1",
        "kind": "AppraisalPolicy",
        "metadata": {"name": "only-machines"},
        "spec": {"for": "*/*/*", "rego": rego, "active": True},
    }
    await here.cluster.create(APPRAISAL_POLICY.resource, made)
    status = {"status": {"active": {"for": "*/*/*", "rego": rego, "version": "1"}}}
    await here.cluster.patch(
        APPRAISAL_POLICY.resource, "only-machines", status, PatchType.MERGE, "", WriteOptions(subresource="status")
    )

    async def denied() -> bool:
        return bool((await guest.get(STATUS)).status_code == 403)

    await until(denied)
    await here.put(f"machine/{guest.who.machine}/key", b"mine")
    assert await guest.read(f"machine/{guest.who.machine}/key") == b"mine"


async def test_a_policy_that_runs_for_seconds_is_ended_told_and_delays_no_other_caller(here: BrokeredCluster) -> None:
    """As somebody who may write AppraisalPolicies would make it: quick in its cases, endless for one path."""
    slow, other = await _attested(here, name="a"), await _attested(here, name="b")
    rego = (
        "package policy\nimport rego.v1\nallow if input.sub\n"
        'allow if { data["resource-path"][0] == "default"; '
        "count([1 | some x in numbers.range(1, 6000); some y in numbers.range(1, 6000); x == y]) == 1 }\n"
    )
    made = {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "AppraisalPolicy", "metadata": {"name": "slow"},
        "spec": {"for": "default/*/*", "rego": rego, "active": True, "cases": [proven_by_nothing("default/*/*")]},
    }  # fmt: skip
    await here.cluster.create(APPRAISAL_POLICY.resource, made)
    status = {"status": {"active": {"for": "default/*/*", "rego": rego, "version": "1"}}}
    await here.cluster.patch(
        APPRAISAL_POLICY.resource, "slow", status, PatchType.MERGE, "", WriteOptions(subresource="status")
    )
    await here.put(f"machine/{other.who.machine}/key", b"mine")

    async def heard() -> bool:
        return bool((await slow.get(STATUS)).status_code == 503)

    await until(heard)
    clock = asyncio.get_running_loop().time
    began, waiting = clock(), asyncio.create_task(slow.get(STATUS))
    assert await other.read(f"machine/{other.who.machine}/key") == b"mine"
    assert clock() - began < 5
    answer = await waiting
    assert (answer.status_code, answer.json()["code"]) == (503, "policy-exceeded")
    assert "retry-after" in answer.headers

    async def reported() -> bool:
        events = (await here.cluster.list(EVENTS)).items
        return any(
            event["reason"] == "PolicyExceeded" and event["involvedObject"]["name"] == "slow" for event in events
        )

    await until(reported)


async def test_a_resource_is_sealed_in_the_cluster_and_opens_only_under_its_path(here: BrokeredCluster) -> None:
    guest = await _attested(here)
    own = f"machine/{guest.who.machine}"
    await here.put(f"{own}/a", b"canary-in-the-cluster")
    await here.put(f"{own}/b", b"other")
    first, second = (resource_name(ResourcePath(*f"{own}/{tag}".split("/"))) for tag in "ab")
    stored = await here.cluster.get(SECRETS, first, SEALED_NAMESPACE)
    assert b"canary" not in base64.b64decode(stored["data"]["sealed"])
    await here.cluster.patch(SECRETS, second, {"data": stored["data"]}, PatchType.MERGE, SEALED_NAMESPACE)
    answer = await guest.get(f"{own}/b")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert await guest.read(f"{own}/a") == b"canary-in-the-cluster"


async def _kbs_config(here: BrokeredCluster, namespace: str, secrets: list[str], *, ready: bool = True) -> None:
    meta = {"name": "kbs", "namespace": namespace}
    made = {"apiVersion": "confidentialcontainers.org/v1alpha1", "kind": "KbsConfig", "metadata": meta}
    await here.cluster.create(KBS_CONFIG.resource, {**made, "spec": {"kbsSecretResources": secrets}})
    await here.cluster.patch(
        KBS_CONFIG.resource, "kbs", {"status": {"isReady": ready}}, PatchType.MERGE, namespace,
        WriteOptions(subresource="status"),
    )  # fmt: skip


async def _secret(here: BrokeredCluster, namespace: str, name: str, labels: Mapping[str, str] | None = None) -> None:
    meta = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    data = {"key.pem": base64.b64encode(b"from a Secret").decode()}
    made = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": data}
    await here.cluster.create(SECRETS, made)


async def test_secrets_of_a_kbs_config_appear_under_default(here: BrokeredCluster) -> None:
    guest = await _attested(here)
    await here.bind("all", "default/*/*", pools=["worker"])
    await _secret(here, NAMESPACE, "offered", {"fastness.dev/resource": "true"})
    await _secret(here, NAMESPACE, "not-labelled")
    await _kbs_config(here, NAMESPACE, ["offered", "not-labelled", "doors-ca", "token-keys"])

    async def opened() -> bool:
        return bool((await guest.get("default/offered/key.pem")).status_code == 200)

    await until(opened)
    assert await guest.read("default/offered/key.pem") == b"from a Secret"
    for path in ("default/not-labelled/key.pem", "default/doors-ca/tls.key", "default/token-keys/keys"):
        assert (await guest.get(path)).status_code == 404, path
