"""Protection is never lowered by accident: every way to weaken needs the digest of that very change in an annotation."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.admission.lowering import weakenings
from fastness.kinds.fastness_dev.cluster import CONFIRM_LOWER
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kube.admission import Allowed, Answer, Denied
from fastness.kube.confirmation import confirmation
from tests.unit.admission.writes import World, review, write

Object = dict[str, Any]
RESOURCE = "confidentialclusters.fastness.dev"
ROOT = {"sha256": "ab" * 32, "for": "tdx", "reason": "lab"}
SPEC: Object = {
    "mode": "Enforce",
    "simulated": True,
    "pools": [{"name": "hosts", "trustModel": "ContainersHost"}],
    "attestation": {
        "evidence": ["tpm", "tdx"],
        "extraRoots": [ROOT],
        "minimumTcb": {"tdx": {"date": "2026-01-01", "svn": 7}, "snp": {"bootloader": "10"}},
    },
    "join": {"approval": "Manual", "trustOnFirstUse": False},
}


def cluster(**changes: Any) -> Object:
    """The cluster with dotted paths replaced, for instance `attestation__evidence=[]`; None removes."""
    spec = copy.deepcopy(SPEC)
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = spec
        for key in parents:
            target = target.setdefault(key, {})
        if value is None:
            target.pop(last, None)
        else:
            target[last] = value
    return {"metadata": {"name": "cluster", "uid": "the-uid", "generation": 3}, "spec": spec}


def confirmed(obj: Object, word: str | None = None, old: Object | None = None) -> Object:
    """The object with a confirmation: by default the one that fits the change from the cluster as it is."""
    given = confirmation(old or cluster(), obj) if word is None else word
    return {**obj, "metadata": {**obj["metadata"], "annotations": {CONFIRM_LOWER: given}}}


def update(new: Object, old: Object | None = None) -> Answer:
    return review(write("UPDATE", RESOURCE, new, old or cluster(), kind="ConfidentialCluster"), World())


WEAKER: dict[str, tuple[Object, str]] = {
    "lower mode": ({"mode": "Audit"}, "mode goes from Enforce to Audit"),
    "disabled": ({"mode": "Disabled"}, "mode goes from Enforce to Disabled"),
    "no mode": ({"mode": None}, "mode goes from Enforce to Disabled"),
    "weaker pool": (
        {"pools": [{"name": "hosts", "trustModel": "None"}]},
        "pool hosts goes from ContainersHost to None",
    ),
    "pool that was confidential by default": (
        {"pools": [*SPEC["pools"], {"name": "worker", "trustModel": "ContainersHost"}]},
        "pool worker goes from ConfidentialCluster to ContainersHost",
    ),
    "another root": (
        {"attestation__extraRoots": [ROOT, {"sha256": "cd" * 32, "for": "snp"}]},
        f"root {'cd' * 32} is trusted for snp",
    ),
    "root for something else": (
        {"attestation__extraRoots": [{**ROOT, "for": "nvidia"}]},
        f"root {'ab' * 32} is trusted for nvidia",
    ),
    "evidence more": ({"attestation__evidence": ["tdx", "tpm", "snp"]}, "evidence snp counts from now on"),
    "no evidence": ({"attestation__evidence": None}, "evidence snp counts from now on"),
    "evidence of a pool": (
        {"pools": [{"name": "hosts", "trustModel": "ContainersHost", "evidence": ["tdx", "snp"]}]},
        "evidence snp counts from now on for pool hosts",
    ),
    "exceptions of pages": ({"attestation__tdx__allowSeptVe": True}, "whose pages the host can make fault"),
    "approval by nobody": ({"join__approval": "Automatic"}, "machines are approved automatically"),
    "approval by default": ({"join": None}, "machines are approved automatically"),
    "longer interval": ({"attestation__reattestInterval": "16m"}, "reattestInterval goes from 15m to 16m"),
    "longer tokens": ({"attestation__tokenLifetime": "1h"}, "tokenLifetime goes from 10m to 1h"),
    "longer challenges": ({"attestation__challengeLifetime": "2m"}, "challengeLifetime goes from 60s to 2m"),
    "older documents": ({"attestation__collateralStaleness": "25h"}, "collateralStaleness goes from 24h to 25h"),
    "later cordon": ({"attestation__missed": {"cordonAfter": "1h"}}, "missed.cordonAfter goes from 15m to 1h"),
    "a time that nobody can read": ({"attestation__tokenLifetime": "long"}, "tokenLifetime goes from 10m to long"),
    "another approver": ({"breakGlass": {"approvers": [{"name": "eve", "key": "k"}]}}, "eve may agree to overrides"),
    "lower svn": ({"attestation__minimumTcb__tdx__svn": 6}, "minimumTcb.tdx.svn goes from 7 to 6"),
    "lower date": ({"attestation__minimumTcb__tdx__date": "2025-12-31"}, "minimumTcb.tdx.date goes from"),
    "lower text number": (
        {"attestation__minimumTcb__snp__bootloader": "9"},
        "minimumTcb.snp.bootloader goes from 10 to 9",
    ),
    "bound removed": ({"attestation__minimumTcb__tdx__svn": None}, "minimumTcb.tdx.svn goes from 7 to nothing"),
    "all bounds removed": ({"attestation__minimumTcb": None}, "minimumTcb.snp.bootloader goes from 10 to nothing"),
    "bound of another type": ({"attestation__minimumTcb__tdx__svn": True}, "minimumTcb.tdx.svn goes from 7 to True"),
    "bound without order": ({"attestation__minimumTcb__tdx__svn": "high"}, "minimumTcb.tdx.svn"),
    "trust on first use": ({"join__trustOnFirstUse": True}, "machines are trusted on first use"),
}


@pytest.mark.parametrize("name", WEAKER)
def test_every_way_to_weaken_needs_the_digest_of_the_change(name: str) -> None:
    changes, phrase = WEAKER[name]
    answer = update(cluster(**changes))
    assert isinstance(answer, Denied)
    assert answer.code == 403
    assert phrase in answer.message
    word = confirmation(cluster(), cluster(**changes))
    assert f"{CONFIRM_LOWER}={word}" in answer.message
    assert answer.causes[0].field == f"metadata.annotations[{CONFIRM_LOWER}]"
    assert answer.causes[0].message == f"Required value: {word}"


@pytest.mark.parametrize("name", WEAKER)
def test_confirmed_weakening_passes_and_is_told(name: str) -> None:
    changes, phrase = WEAKER[name]
    answer = update(confirmed(cluster(**changes)))
    assert isinstance(answer, Allowed)
    assert any(phrase in warning for warning in answer.warnings)


@pytest.mark.parametrize("word", ["", "the-uid", "true", "0" * 64])
def test_another_word_confirms_nothing(word: str) -> None:
    assert isinstance(update(confirmed(cluster(mode="Audit"), word)), Denied)


@pytest.mark.row("000-03")
def test_a_confirmation_is_good_for_one_change() -> None:
    word = confirmation(cluster(), cluster(mode="Audit"))
    assert isinstance(update(confirmed(cluster(mode="Audit"), word)), Allowed)
    assert isinstance(update(confirmed(cluster(mode="Disabled"), word)), Denied), "another change"
    later = cluster()
    later["metadata"]["generation"] = 4
    assert isinstance(update(confirmed(cluster(mode="Audit"), word), later), Denied), "the same change, later"
    other = cluster()
    other["metadata"]["uid"] = "another-uid"
    assert isinstance(update(confirmed(cluster(mode="Audit"), word), other), Denied), "another cluster"
    stricter = cluster(join__trustOnFirstUse=True)
    assert isinstance(update(confirmed(cluster(mode="Audit"), word), stricter), Denied), "from something else"


def test_confirmation_must_be_in_the_new_object_of_an_update() -> None:
    assert isinstance(update(cluster(mode="Audit"), confirmed(cluster())), Denied)


def test_object_without_a_uid_cannot_be_confirmed() -> None:
    old = cluster()
    del old["metadata"]["uid"]
    assert isinstance(update(confirmed(cluster(mode="Audit"), ""), old), Denied)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pools": []},
        {"pools": [{"name": "hosts", "trustModel": "ConfidentialCluster"}]},
        {"attestation__extraRoots": []},
        {"attestation__extraRoots": [{**ROOT, "reason": "another reason"}]},
        {"attestation__evidence": ["tdx"]},
        {"pools": [{"name": "hosts", "trustModel": "ContainersHost", "evidence": ["tdx"]}]},
        {"attestation__tdx__allowSeptVe": False},
        {"attestation__reattestInterval": "5m", "attestation__tokenLifetime": "1m"},
        {"attestation__missed": {"drainAfter": "1h"}},
        {"attestation__minimumTcb__tdx__svn": 8},
        {"attestation__minimumTcb__snp__bootloader": "11"},
        {"attestation__minimumTcb__tdx__date": "2026-06-01"},
        {"attestation__minimumTcb__nvidia": {"driver": 5}},
    ],
)
def test_stricter_or_equal_needs_no_confirmation(changes: Object) -> None:
    assert isinstance(update(cluster(**changes)), Allowed)


def test_a_pool_that_loses_its_own_types_of_evidence_gets_those_of_the_cluster() -> None:
    strict = cluster(pools=[{"name": "hosts", "trustModel": "ContainersHost", "evidence": ["tdx"]}])
    answer = update(cluster(), strict)
    assert isinstance(answer, Denied)
    assert "evidence tpm counts from now on for pool hosts" in answer.message
    assert update(strict, cluster()) == Allowed()


def test_deletion_needs_its_confirmation_on_the_stored_object() -> None:
    def delete(old: Object) -> Answer:
        return review(write("DELETE", RESOURCE, None, old), World())

    refused = delete(cluster())
    assert isinstance(refused, Denied)
    assert "the cluster loses its protection" in refused.message
    word = confirmation(cluster(), None)
    assert f"{CONFIRM_LOWER}={word}" in refused.message
    assert isinstance(delete(confirmed(cluster(), word)), Allowed)
    assert isinstance(delete(confirmed(cluster(), "other")), Denied)
    assert isinstance(delete(confirmed(cluster(), confirmation(cluster(), cluster()))), Denied)


def test_status_is_not_judged() -> None:
    request = write("UPDATE", f"{RESOURCE}/status", cluster(mode="Disabled"), cluster())
    assert review(request, World()) == Allowed()


modes = st.sampled_from(["Disabled", "Audit", "Enforce", None])
specs = st.fixed_dictionaries({
    "mode": modes,
    "pools": st.lists(
        st.fixed_dictionaries({"name": st.sampled_from("ab"), "trustModel": st.sampled_from(list(TrustModel))}), max_size=2
    ),
    "attestation": st.fixed_dictionaries({
        "evidence": st.lists(st.sampled_from(["tpm", "tdx"]), unique=True),
        "minimumTcb": st.dictionaries(st.sampled_from("xy"), st.one_of(st.integers(0, 3), st.sampled_from(["1", "z"]))),
    }),
})  # fmt: skip


@given(specs)
def test_same_spec_is_never_a_weakening(spec: Object) -> None:
    assert list(weakenings({"spec": spec}, {"spec": copy.deepcopy(spec)})) == []


@given(specs, specs)
def test_no_phrase_means_no_pool_is_weaker(old: Object, new: Object) -> None:
    if list(weakenings({"spec": old}, {"spec": new})):
        return
    for pool in ("a", "b", "unlisted"):
        before, after = trust_model({"spec": old}, pool), trust_model({"spec": new}, pool)
        assert after.strength >= before.strength


@pytest.mark.parametrize(
    "spec", [None, [], {"pools": "x"}, {"pools": [1, {}]}, {"attestation": {"evidence": 5, "extraRoots": {}}}]
)
def test_unreadable_specs_do_not_crash(spec: Any) -> None:
    list(weakenings({"spec": spec}, {"spec": spec}))
    assert list(weakenings({"spec": SPEC}, {"spec": spec}))
    assert confirmation({"metadata": {"uid": "u"}, "spec": spec}, {"spec": spec})


def test_only_one_confidential_cluster_exists() -> None:
    other = {**cluster(), "metadata": {"name": "second"}}
    answer = review(write("CREATE", RESOURCE, other, kind="ConfidentialCluster"), World())
    assert isinstance(answer, Denied)
    assert (answer.code, answer.reason, answer.causes[0].field) == (422, "Invalid", "metadata.name")
    assert review(write("CREATE", RESOURCE, cluster()), World()) == Allowed()


@pytest.mark.parametrize(("claimed", "bound", "allowed"), [
    (True, True, True), (False, False, True), (None, False, True), (True, None, True), (False, None, True),
    (True, False, False), (False, True, False), (None, True, False),
])  # fmt: skip
def test_simulated_belongs_to_the_store(claimed: bool | None, bound: bool | None, allowed: bool) -> None:
    new = cluster(simulated=claimed)
    answer = review(write("CREATE", RESOURCE, new, kind="ConfidentialCluster"), World(is_simulated=bound))
    assert isinstance(answer, Allowed) is allowed
    if isinstance(answer, Denied):
        assert (answer.code, answer.causes[0].field) == (422, "spec.simulated")


def test_simulated_is_immutable_even_before_the_store_is_bound() -> None:
    answer = update(confirmed(cluster(simulated=False)))
    assert isinstance(answer, Denied)
    assert answer.causes[0].field == "spec.simulated"


@pytest.mark.parametrize(("profile", "mode", "allowed"), [
    ("Permissive", "Enforce", False), ("Permissive", "Audit", True), ("Permissive", "Disabled", True),
    ("Restricted", "Enforce", True), ("Permissive", None, True),
])  # fmt: skip
def test_permissive_broker_is_refused_where_attestation_is_enforced(
    profile: str, mode: str | None, allowed: bool
) -> None:
    new = {"metadata": {"name": "t"}, "spec": {"profileType": profile}}
    world = World(cluster=cluster(mode=mode) if mode else None)
    answer = review(write("CREATE", "trusteeconfigs.confidentialcontainers.org", new, namespace="d"), world)
    assert isinstance(answer, Allowed) is allowed
