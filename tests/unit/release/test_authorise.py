"""A Grant exists only for a live proof of the right kind, names exactly what it is for, and is made in one place."""

from __future__ import annotations

import ast
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import fastness
from fastness.attestation.policy.query import ActivePolicy, Answer, Query, drive
from fastness.attestation.policy.resource_policy import ResourcePolicies
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.trusted_execution.subject import Basis, Grant, ProvenCaller, Subject
from fastness.protocol.kbs_path import ResourcePath, pin_key, pool_config
from fastness.release.authorise import ClusterRules, Denial, Remedy, authorise
from fastness.release.source import require_for
from tests.granting import NOW

SUBJECT = Subject(
    "0b0e7f0e-0000-4000-8000-000000000001", "machine-a", "sha256:" + "a" * 64, "worker", tee="tpm",
    endorsement="ek-certificate",
)  # fmt: skip
FIRST_USE = replace(SUBJECT, endorsement="trust-on-first-use")
CALLER = ProvenCaller(SUBJECT, "verdict-1", {"kty": "EC"}, NOW + timedelta(minutes=10))
PATH, KEY = pool_config("worker"), ResourcePath("machine", SUBJECT.machine, "key")
ENFORCING, SIMULATED = ClusterRules(), ClusterRules(simulated=True)
PLAIN = ClusterRules(pools={"worker": TrustModel.NONE})


def decided(
    caller: ProvenCaller = CALLER,
    path: ResourcePath = PATH,
    rules: ClusterRules = ENFORCING,
    policies: ResourcePolicies | None = None,
    answer: Answer = Answer(value=True),  # noqa: B008  # frozen
    **more: Any,
) -> Grant | Denial:
    return drive(authorise(caller, path, rules, policies, **{"revoked": False, "now": NOW, **more}), lambda _: answer)


def granted(*arguments: Any, **more: Any) -> Grant:
    outcome = decided(*arguments, **more)
    assert isinstance(outcome, Grant), outcome
    return outcome


def denied(*arguments: Any, **more: Any) -> str:
    outcome = decided(*arguments, **more)
    assert isinstance(outcome, Denial)
    return outcome.code


def on(basis: Basis) -> ProvenCaller:
    return replace(CALLER, basis=basis, verdict="", subject=Subject("", "who", "who", "worker"))


def test_a_live_proof_gives_a_grant_for_one_resource_one_key_and_no_longer_than_itself() -> None:
    grant = granted()
    assert (grant.subject, grant.resource, grant.recipient) == (SUBJECT, "pool/worker/config", {"kty": "EC"})
    assert grant.live(NOW)
    assert not grant.live(CALLER.expires)


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        (replace(CALLER, expires=NOW), "verdict-expired"),
        (replace(CALLER, subject=replace(SUBJECT, simulated=True)), "simulated"),
        (replace(CALLER, basis=Basis.AUDIT), "audit-basis"),
        (replace(CALLER, verdict=""), "no-verdict"),
        (replace(CALLER, subject=replace(SUBJECT, endorsement="")), "not-endorsed"),
        (replace(CALLER, subject=replace(SUBJECT, endorsement="evidence")), "not-endorsed"),
        (replace(CALLER, subject=replace(SUBJECT, tee="snp")), "not-endorsed"),
        (replace(CALLER, subject=replace(SUBJECT, tee="sample")), "not-endorsed"),
        (replace(CALLER, subject=FIRST_USE), "first-use-not-allowed"),
        (replace(CALLER, subject=replace(SUBJECT, pool="infra")), "other-pool"),
    ],
)
def test_what_is_not_a_live_proof_of_the_right_kind_is_denied(caller: ProvenCaller, code: str) -> None:
    assert denied(caller) == code


def test_whose_trust_has_ended_is_denied_before_anything_else() -> None:
    assert denied(revoked=True) == "revoked"
    assert denied(replace(CALLER, expires=NOW), ResourcePath("machine", "another", "key"), revoked=True) == "revoked"


def test_a_simulated_cluster_takes_simulated_proof_and_an_auditing_one_its_own_basis() -> None:
    simulated = replace(CALLER, subject=replace(SUBJECT, simulated=True))
    assert granted(simulated, rules=SIMULATED).subject.simulated
    assert granted(on(Basis.AUDIT), rules=ClusterRules(enforcing=False)).basis is Basis.AUDIT


@pytest.mark.parametrize("basis", [Basis.TICKET, Basis.NODE_CERTIFICATE])
def test_without_a_verdict_there_are_configurations_of_pools_that_do_not_attest(basis: Basis) -> None:
    assert granted(on(basis), rules=PLAIN).resource == "pool/worker/config"
    assert granted(on(basis), rules=ClusterRules(attests=False)).resource == "pool/worker/config"
    assert denied(on(basis)) == "attestation-required"
    assert denied(on(basis), rules=ClusterRules(attests=False, pools={"worker": TrustModel.CONFIDENTIAL_CLUSTER}))
    assert denied(on(basis), pool_config("infra"), ClusterRules(attests=False)) == "other-pool"


@pytest.mark.parametrize("basis", [basis for basis in Basis if basis is not Basis.VERDICT])
def test_without_a_verdict_there_is_nothing_but_configurations(basis: Basis) -> None:
    lenient = ClusterRules(enforcing=False, attests=False, copies=True)
    for path in (ResourcePath("pool", "worker", "key"), ResourcePath("default", "attestation-status", "status")):
        assert denied(on(basis), path, lenient) == "attestation-required"


def test_the_broker_has_copies_while_it_delivers_from_copies() -> None:
    assert granted(on(Basis.COPY), rules=ClusterRules(copies=True)).basis is Basis.COPY
    outcome = decided(on(Basis.COPY))
    assert isinstance(outcome, Denial)
    assert (outcome.code, outcome.remedy) == ("token-required", Remedy.PROOF)


def test_a_policy_of_a_user_only_takes_away() -> None:
    policies = ResourcePolicies([ActivePolicy("own", "pool/*/*", "package policy", "1", replaces=True)])
    assert granted(policies=policies).resource == "pool/worker/config"
    assert denied(policies=policies, answer=Answer(value=False)) == "policy-denied"
    late = decided(policies=policies, answer=Answer(exceeded="slow"))
    assert isinstance(late, Denial)
    assert (late.code, late.remedy) == ("policy-exceeded", Remedy.TIME)
    assert denied(path=ResourcePath("machine", "another", "key"), policies=policies) == "other-machine"


def test_policies_are_asked_about_what_the_caller_proved_and_nothing_that_is_not_theirs() -> None:
    policies = ResourcePolicies([ActivePolicy("own", "*/*/*", "package policy", "1", replaces=True)])
    queries: list[Query] = []

    def answer(query: Query) -> Answer:
        queries.append(query)
        return Answer(value=True)

    for path in (KEY, ResourcePath("machine", "another", "key")):
        drive(authorise(CALLER, path, ENFORCING, policies, revoked=False, now=NOW), answer)
    assert len(queries) == 1


def test_an_override_opens_the_gate_and_no_keys_and_never_a_policy_that_gave_no_answer() -> None:
    """Two approvers let a machine in that nothing affirms: the built-in policy refuses it everywhere else."""
    built_in = ResourcePolicies([])
    assert denied(path=KEY, policies=built_in) == "policy-denied"
    assert granted(policies=built_in, break_glass=True).resource == "pool/worker/config"
    own = ResourcePolicies([ActivePolicy("own", "pool/*/*", "package policy", "1")])
    assert granted(policies=own, break_glass=True).resource == "pool/worker/config"
    assert denied(policies=own, answer=Answer(value=False), break_glass=True) == "policy-denied"
    assert denied(policies=own, answer=Answer(exceeded="slow"), break_glass=True) == "policy-exceeded"


def test_a_grant_says_what_it_rests_on() -> None:
    grant = granted(replace(CALLER, subject=FIRST_USE), rules=ClusterRules(first_use=True))
    assert grant.described() == {"basis": "verdict", "tee": "tpm", "endorsement": "trust-on-first-use"}
    assert grant.id != granted().id


def test_the_id_is_the_same_for_the_same_release_and_differs_for_any_other() -> None:
    first = granted()
    assert granted(now=NOW + timedelta(minutes=1)).id == first.id
    others = {
        granted(path=KEY).id,
        granted(replace(CALLER, verdict="verdict-2")).id,
        granted(replace(CALLER, recipient={"kty": "RSA"})).id,
    }
    assert len(others | {first.id}) == 4


def test_a_grant_cannot_be_made_or_widened_by_hand() -> None:
    with pytest.raises(TypeError, match="authorise alone"):
        Grant("id", CALLER, str(PATH), object())
    with pytest.raises(ValueError, match="authority"):
        replace(granted(), resource=str(KEY))  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="opens nothing else"):
        require_for(granted(), KEY)


def test_nothing_but_authorise_makes_a_grant() -> None:
    """Nobody else in the product has what the constructor wants to see: no import of it, and no way around one."""
    source = Path(fastness.__file__).parent
    naming = {path.relative_to(source).as_posix() for path in source.rglob("*.py") if "GRANTING" in path.read_text()}
    assert naming == {"kinds/trusted_execution/subject.py", "release/authorise.py"}
    calls = [
        node for node in ast.walk(ast.parse((source / "release/authorise.py").read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Grant"
    ]  # fmt: skip
    assert len(calls) == 1


PINNED_UID, PINNED_ID = "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11", "316809b1-ea29-448c-accb-78c5c6bf5206"
PINNED = replace(
    CALLER,
    subject=Subject(
        PINNED_UID, "m", "sha256:" + "0" * 64, "worker", tee="tpm", endorsement="trust-on-first-use", id=PINNED_ID
    ),
)
PIN_RULES = ClusterRules(first_use=True, clevis=frozenset({"worker"}))


def in_phase(phase: str) -> ProvenCaller:
    evidence = {"ear.veraison.annotated-evidence": {"tpm": {"phase": phase}}}
    return replace(PINNED, claims={"submods": {"cpu0": evidence}})


@pytest.mark.parametrize("name", [PINNED_ID, PINNED_UID])
def test_the_root_that_the_clevis_pin_opens_is_for_its_machine(name: str) -> None:
    assert granted(PINNED, pin_key(name), PIN_RULES).resource == f"default/{name}/root"
    assert granted(in_phase("initrd"), pin_key(name), PIN_RULES).subject.id == PINNED_ID


@pytest.mark.parametrize(
    ("caller", "path", "rules", "code"),
    [
        (PINNED, pin_key("5f0c8f52-1d3b-4f6e-9c55-0a8f3f1b7a11"), PIN_RULES, "other-machine"),
        (PINNED, pin_key(PINNED_ID), replace(PIN_RULES, clevis=frozenset()), "unlock-required"),
        (PINNED, pin_key(PINNED_ID), replace(PIN_RULES, first_use=False), "first-use-not-allowed"),
        (PINNED, ResourcePath("machine", PINNED_UID, "disk-root"), PIN_RULES, "unlock-required"),
        (in_phase("system"), pin_key(PINNED_ID), PIN_RULES, "initrd-left"),
        (
            replace(PINNED, subject=replace(PINNED.subject, tee="snp", endorsement="evidence")),
            pin_key(PINNED_ID), PIN_RULES, "unlock-required",
        ),
    ],
)  # fmt: skip
def test_it_is_for_nobody_else_and_not_after_the_initrd(
    caller: ProvenCaller, path: ResourcePath, rules: ClusterRules, code: str
) -> None:
    assert denied(caller, path, rules) == code
