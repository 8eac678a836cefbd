"""The decision about a kubelet's request: each rule broken once, and nothing but the one good case passes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.crypto.csr import make_request
from fastness.crypto.digests import sha256
from fastness.crypto.keys import PrivateKey
from fastness.crypto.x509 import Subject
from fastness.enrolment.kubelet_certificates import (
    BOOTSTRAP_GROUP,
    Approve,
    JoinToken,
    Known,
    NotOurs,
    Wait,
    decide,
    other_approvers,
)
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339, view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.access.kubelet_requests import Deny, KubeletRequest, is_decided, read_asked
from fastness.protocol.node_certificates import CLIENT_SIGNER, SERVING_SIGNER, addresses_of
from tests.joining import csr
from tests.virtual import SeededEntropy

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
INTERVAL = timedelta(minutes=15)
NODE = "worker-0123456789abcdef0123"
UID = "11111111-1111-4111-8111-111111111111"
KEY, OTHER_KEY = PrivateKey.generate(SeededEntropy(1)), PrivateKey.generate(SeededEntropy(2))
KEY_NAME, OTHER_NAME = (str(sha256(key.public_der())) for key in (KEY, OTHER_KEY))
TOKEN = JoinToken("abc123", UID, KEY_NAME, NOW + timedelta(minutes=10), "tpm", "ek-certificate")
USAGES = {CLIENT_SIGNER: ("digital signature", "client auth"), SERVING_SIGNER: ("digital signature", "server auth")}


NAMED: JsonObject = {"key": KEY_NAME, "named": rfc3339(NOW)}
NODE_KEYS: JsonObject = {"client": NAMED, "serving": NAMED, "replaced": [OTHER_NAME]}


def machine(**status: Any) -> Machine:
    conditions = [
        {"type": "Approved", "status": "True", "reason": "Automatic", "lastTransitionTime": rfc3339(NOW)},
        {"type": "Attested", "status": "True", "reason": "Affirmed", "lastTransitionTime": rfc3339(NOW)},
    ]
    status_fields = {
        "nodeName": NODE, "keyThumbprint": "sha256:" + "0" * 64, "tee": "tpm", "endorsedBy": "ek-certificate",
        "pool": "worker", "lastVerdict": "v-1", "properties": {"tee": "tpm", "endorsement": "ek-certificate"},
        "lastAttested": rfc3339(NOW - timedelta(minutes=5)), "conditions": conditions, "nodeKeys": NODE_KEYS,
        **status,
    }  # fmt: skip
    meta = {"name": "machine-0123456789abcdef0123", "uid": UID}
    return view({"metadata": meta, "spec": {"id": UID, "approval": "Approved"}, "status": status_fields}, Machine)


def request(
    signer: str = CLIENT_SIGNER, key: PrivateKey = KEY, node: str = NODE, hosts: tuple[str, ...] = (), **spec: Any
) -> JsonObject:
    subject = spec.pop("subject", Subject(f"system:node:{node}", ("system:nodes",)))
    body = csr(make_request(key, subject, hosts), signer, USAGES[signer])
    body["spec"] |= {
        "username": "system:bootstrap:abc123",
        "groups": ["system:bootstrappers", BOOTSTRAP_GROUP],
        **spec,
    }
    return body


def own(signer: str = CLIENT_SIGNER, hosts: tuple[str, ...] = (), **spec: Any) -> JsonObject:
    """A request with the node's own certificate."""
    return request(signer, hosts=hosts, **{"username": f"system:node:{NODE}", "groups": ["system:nodes"], **spec})


def kubelet_request(body: JsonObject) -> KubeletRequest:
    read = read_asked(body)
    assert read is not None
    return read


BOOTSTRAP = Known(INTERVAL, token=TOKEN, machine=machine())
RENEWAL = Known(INTERVAL, machine=machine())
SERVING = Known(INTERVAL, machine=machine(), addresses=frozenset({NODE, f"{NODE}.example", "10.0.0.1", "fd00::1"}))


def test_a_machine_with_a_live_proof_its_token_and_its_key_is_approved() -> None:
    assert decide(kubelet_request(request()), BOOTSTRAP, NOW) == Approve(machine())
    encipher = [*USAGES[CLIENT_SIGNER], "key encipherment"]
    assert decide(kubelet_request(request(usages=encipher, expirationSeconds=3600)), BOOTSTRAP, NOW) == Approve(
        machine()
    )


def test_a_node_renews_with_its_own_certificate_and_the_key_that_its_machine_named() -> None:
    assert decide(kubelet_request(own()), RENEWAL, NOW) == Approve(machine())


@pytest.mark.parametrize("signer", [CLIENT_SIGNER, SERVING_SIGNER])
def test_a_key_that_no_session_named_gets_no_certificate_whatever_else_is_good(signer: str) -> None:
    hosts = (NODE,) if signer == SERVING_SIGNER else ()
    unnamed = [{"serving": NAMED}, {"client": NAMED}, {}]
    mine = unnamed[0 if signer == CLIENT_SIGNER else 1]
    for keys in (mine, unnamed[2]):
        facts = replace(SERVING, machine=machine(nodeKeys=keys))
        decision = decide(kubelet_request(own(signer, hosts)), facts, NOW)
        assert isinstance(decision, Deny)
        assert (decision.reason, decision.alarm) == ("KeyNotNamed", False)


def test_an_unnamed_key_is_denied_for_good_also_while_the_proof_is_not_live() -> None:
    """A tampered machine's request must not wait for a later proof of the same machine."""
    facts = replace(RENEWAL, machine=machine(nodeKeys={}, lastAttested=rfc3339(NOW - timedelta(days=1))))
    decision = decide(kubelet_request(own()), facts, NOW)
    assert isinstance(decision, Deny)
    assert decision.reason == "KeyNotNamed"


@pytest.mark.parametrize(
    ("created", "alarm"), [(NOW + timedelta(seconds=1), True), (NOW - timedelta(minutes=1), False)]
)
def test_a_replaced_key_is_denied_and_an_alarm_unless_the_request_is_older_than_its_replacement(
    created: datetime, alarm: bool
) -> None:
    body = own(key=OTHER_KEY)
    body["metadata"]["creationTimestamp"] = rfc3339(created)
    decision = decide(kubelet_request(body), RENEWAL, NOW)
    assert isinstance(decision, Deny)
    assert (decision.reason, decision.alarm) == ("ReplacedKey", alarm)


def test_a_named_key_gets_one_certificate() -> None:
    decision = decide(kubelet_request(own()), replace(RENEWAL, certified="node-csr-1"), NOW)
    assert isinstance(decision, Deny)
    assert decision.reason == "KeyUsed"


@pytest.mark.parametrize("hosts", [(NODE,), ("10.0.0.1",), (NODE, f"{NODE}.example", "10.0.0.1", "fd00::1")])
def test_a_node_serves_under_its_own_names(hosts: tuple[str, ...]) -> None:
    assert decide(kubelet_request(own(SERVING_SIGNER, hosts)), SERVING, NOW) == Approve(machine())


@pytest.mark.parametrize(
    ("body", "facts", "reason"),
    [
        (request(subject=Subject("admin", ("system:nodes",))), BOOTSTRAP, "BadSubject"),
        (request(subject=Subject(f"system:node:{NODE}", ("system:masters",))), BOOTSTRAP, "BadSubject"),
        (request(subject=Subject(f"system:node:{NODE}", ("system:nodes", "system:masters"))), BOOTSTRAP, "BadSubject"),
        (request(subject=Subject("system:node:", ("system:nodes",))), BOOTSTRAP, "BadSubject"),
        (request(request="not base64!"), BOOTSTRAP, "BadRequest"),
        (request(request="eA=="), BOOTSTRAP, "BadRequest"),
        (request(usages=["client auth"]), BOOTSTRAP, "BadUsages"),
        (request(usages=["digital signature", "client auth", "server auth"]), BOOTSTRAP, "BadUsages"),
        (request(usages=["digital signature", "client auth", "cert sign"]), BOOTSTRAP, "BadUsages"),
        (request(usages=["digital signature", "client auth", "client auth"]), BOOTSTRAP, "BadUsages"),
        (request(expirationSeconds=3601), BOOTSTRAP, "TooLong"),
        (request(hosts=(NODE,)), BOOTSTRAP, "BadNames"),
        (request(hosts=("10.0.0.1",)), BOOTSTRAP, "BadNames"),
        (request(key=OTHER_KEY), BOOTSTRAP, "OtherKey"),
        (request(node="worker-ffffffffffffffffffff"), BOOTSTRAP, "OtherNode"),
        (request(), replace(BOOTSTRAP, token=None), "TokenEnded"),
        (request(), replace(BOOTSTRAP, token=replace(TOKEN, expires=NOW)), "TokenEnded"),
        (request(), replace(BOOTSTRAP, token=replace(TOKEN, machine="another")), "NoMachine"),
        (request(), replace(BOOTSTRAP, machine=None), "NoMachine"),
        (request(username="system:bootstrap:ABC123"), BOOTSTRAP, "NotTheMachine"),
        (request(groups=["system:bootstrappers"]), BOOTSTRAP, "NotTheMachine"),
        (request(SERVING_SIGNER, hosts=(NODE,)), BOOTSTRAP, "NotTheNode"),
        (own(username="system:node:other"), RENEWAL, "NotTheMachine"),
        (own(groups=["system:authenticated"]), RENEWAL, "NotTheMachine"),
        (own(username="admin", groups=["system:masters"]), RENEWAL, "NotTheMachine"),
        (request(), replace(BOOTSTRAP, machine=machine(simulated=True)), "Simulated"),
        (request(), replace(BOOTSTRAP, distrusted="the firmware is broken"), "Distrusted"),
        (request(), replace(BOOTSTRAP, token=replace(TOKEN, tee="snp")), "OtherSubject"),
        (request(), replace(BOOTSTRAP, token=replace(TOKEN, endorsement="trust-on-first-use")), "OtherSubject"),
        (request(), replace(BOOTSTRAP, token=replace(TOKEN, endorsement="")), "OtherSubject"),
        (own(), replace(RENEWAL, machine=machine(endorsedBy="evidence")), "NotEndorsed"),
        (own(), replace(RENEWAL, machine=machine(endorsedBy="")), "NotEndorsed"),
        (own(), replace(RENEWAL, machine=machine(tee="sample")), "NotEndorsed"),
        (own(), replace(RENEWAL, machine=machine(endorsedBy="trust-on-first-use")), "NotEndorsed"),
        (own(SERVING_SIGNER), SERVING, "BadNames"),
        (own(SERVING_SIGNER, ("other",)), SERVING, "ForeignNames"),
        (own(SERVING_SIGNER, (f"{NODE}x",)), SERVING, "ForeignNames"),
        (own(SERVING_SIGNER, ("*",)), SERVING, "ForeignNames"),
        (own(SERVING_SIGNER, (NODE, "127.0.0.1")), SERVING, "ForeignNames"),
        (own(SERVING_SIGNER, (NODE, "0.0.0.0")), SERVING, "ForeignNames"),
        (own(SERVING_SIGNER, (NODE, "169.254.169.254")), SERVING, "ForeignNames"),
        (own(SERVING_SIGNER, (NODE, "::1")), SERVING, "ForeignNames"),
        (own(SERVING_SIGNER, (NODE, "10.0.0.1")), replace(SERVING, shared=frozenset({"10.0.0.1"})), "SharedAddresses"),
    ],
)  # fmt: skip
def test_what_is_wrong_for_good_is_denied_with_its_reason(body: JsonObject, facts: Known, reason: str) -> None:
    decision = decide(kubelet_request(body), facts, NOW)
    assert isinstance(decision, Deny), decision
    assert decision.reason == reason
    assert decision.message


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"approval": "Quarantined"}, "Quarantined"), ({"revoked": True}, "Revoked"), ({"gone": True}, "Deleted")],
)
def test_a_machine_that_is_no_longer_trusted_is_denied(change: dict[str, Any], reason: str) -> None:
    raw: JsonObject = {
        "metadata": {"name": "m", "uid": UID, **({"deletionTimestamp": rfc3339(NOW)} if "gone" in change else {})},
        "spec": {"id": UID, "approval": change.get("approval", "Approved")},
        "status": {
            "nodeName": NODE, "keyThumbprint": "sha256:" + "0" * 64, "tee": "tpm", "endorsedBy": "ek-certificate",
            "lastAttested": rfc3339(NOW),
            "conditions": [
                {"type": "Approved", "status": "True"}, {"type": "Attested", "status": "True"},
                *([{"type": "Revoked", "status": "True"}] if "revoked" in change else []),
            ],
        },
    }  # fmt: skip
    decision = decide(kubelet_request(request()), replace(BOOTSTRAP, machine=view(raw, Machine)), NOW)
    assert isinstance(decision, Deny)
    assert decision.reason == reason


@pytest.mark.parametrize(
    ("body", "facts", "reason"),
    [
        (request(), replace(BOOTSTRAP, machine=machine(lastAttested=None)), "NeverAttested"),
        (request(), replace(BOOTSTRAP, machine=machine(properties={"tee": "snp"})), "OtherSubject"),
        (own(), replace(RENEWAL, machine=machine(properties={"tee": "tpm"})), "OtherSubject"),
        (request(), replace(BOOTSTRAP, machine=machine(lastAttested=rfc3339(NOW - 2 * INTERVAL))), "ProofExpired"),
        (own(), replace(RENEWAL, machine=machine(lastAttested=rfc3339(NOW - 2 * INTERVAL))), "ProofExpired"),
        (own(SERVING_SIGNER, (NODE,)), replace(SERVING, addresses=None), "NoNode"),
        (own(SERVING_SIGNER, (NODE, "10.9.9.9")), SERVING, "UnknownAddresses"),
        (own(SERVING_SIGNER, (f"{NODE}.elsewhere",)), SERVING, "UnknownAddresses"),
    ],
)  # fmt: skip
def test_what_may_still_come_waits(body: JsonObject, facts: Known, reason: str) -> None:
    decision = decide(kubelet_request(body), facts, NOW)
    assert isinstance(decision, Wait), decision
    assert decision.reason == reason


def test_requests_of_others_are_left_to_others() -> None:
    nobody = Known(INTERVAL)
    kubeadm = request(
        node="control-plane", groups=["system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"]
    )
    assert decide(kubelet_request(kubeadm), nobody, NOW) == NotOurs()
    assert decide(kubelet_request(own(node="control-plane")), nobody, NOW) == NotOurs()
    other = request()
    other["spec"]["signerName"] = "kubernetes.io/kube-apiserver-client"
    assert read_asked(other) is None


@pytest.mark.parametrize("kind", ["Approved", "Denied", "Failed"])
def test_what_somebody_decided_is_decided(kind: str) -> None:
    assert is_decided({"status": {"conditions": [{"type": kind}]}})
    assert not is_decided({"status": {"conditions": [{"type": "Other"}]}})
    assert not is_decided({})


def test_the_names_of_a_node_are_what_it_tells() -> None:
    addresses = [
        {"type": "Hostname", "address": "n"},
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "ExternalIP"},
    ]
    assert addresses_of({"status": {"addresses": addresses}}) == {"n", "10.0.0.1"}
    assert addresses_of({}) == frozenset()


def test_bindings_by_which_kubernetes_approves_by_itself_are_found() -> None:
    prefix = "system:certificates.k8s.io:certificatesigningrequests"

    def binding(name: str, role: str, **more: Any) -> JsonObject:
        return {"metadata": {"name": name}, "roleRef": {"name": role}, "subjects": [{"kind": "Group"}], **more}

    bindings = [
        binding("rotation", f"{prefix}:selfnodeclient"), binding("bootstrap", f"{prefix}:nodeclient"),
        binding("nobody", f"{prefix}:nodeclient", subjects=None), binding("other", "view"), {"metadata": {"name": "odd"}},
    ]  # fmt: skip
    assert other_approvers(bindings) == ["bootstrap", "rotation"]


def test_a_machine_that_was_trusted_on_first_use_joins_where_that_is_allowed() -> None:
    proved = {"tee": "tpm", "endorsement": "trust-on-first-use"}
    newcomer = machine(endorsedBy="trust-on-first-use", properties=proved)
    assert decide(kubelet_request(own()), replace(RENEWAL, machine=newcomer, first_use=True), NOW) == Approve(newcomer)
