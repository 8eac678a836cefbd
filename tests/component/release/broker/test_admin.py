"""Administration: short-lived, scoped, on the record, and into the objects that everybody uses."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import pytest

from fastness.keys.errors import BadToken
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kube.errors import NotFound
from tests.component.release.broker.brokered_cluster import BrokeredCluster, until

PATH = "/kbs/v0/resource/default/db/password"
ALLOW = b'package policy\nimport rego.v1\ndefault allow := false\nallow if input.submods.cpu0["ear.status"] == "affirming"\n'
TPM = (
    b"package policy\nimport rego.v1\ndefault executables := 33\ndefault hardware := 97\ndefault configuration := 36\n"
)


def _body(policy: bytes, **more: str) -> dict[str, str]:
    return {"policy": base64.urlsafe_b64encode(policy).decode().rstrip("="), **more}


async def test_a_resource_is_written_listed_replaced_and_deleted(here: BrokeredCluster) -> None:
    http, headers = await here.client(), {"authorization": await here.admin()}
    assert (await http.post(PATH, content=b"one", headers=headers)).status_code == 200
    assert (await http.post(PATH, content=b"two", headers=headers)).status_code == 200
    assert (await http.get("/kbs/v0/resource", headers=headers)).json() == ["default/db/password"]
    assert (await http.delete(PATH, headers=headers)).status_code == 200
    assert (await http.delete(PATH, headers=headers)).status_code == 404
    assert (await http.get("/kbs/v0/resource", headers=headers)).json() == []
    assert [entry.what for entry in here.ledger.entries] == ["resource-written"] * 2 + ["resource-deleted"] * 2


async def test_a_path_that_no_resource_has_is_refused_to_administrators_too(here: BrokeredCluster) -> None:
    http, headers = await here.client(), {"authorization": await here.admin()}
    for path in ("default/db/Password", "default/db/pass%20word", f"default/db/{'x' * 129}"):
        for answer in (
            await http.post(f"/kbs/v0/resource/{path}", content=b"x", headers=headers),
            await http.delete(f"/kbs/v0/resource/{path}", headers=headers),
        ):
            assert (answer.status_code, answer.json()["code"]) == (400, "bad-path")


async def test_a_scope_covers_a_method_and_a_path(here: BrokeredCluster) -> None:
    http = await here.client()
    writer = {"authorization": await here.admin("POST resource/default/*/*")}
    assert (await http.post(PATH, content=b"x", headers=writer)).status_code == 200
    assert (await http.delete(PATH, headers=writer)).status_code == 403
    elsewhere = PATH.replace("default", "other")
    assert (await http.post(elsewhere, content=b"x", headers=writer)).status_code == 403
    assert (await http.get("/kbs/v0/resource", headers=writer)).status_code == 403


async def test_a_credential_ends_and_cannot_be_made_for_long(here: BrokeredCluster) -> None:
    http = await here.client()
    earlier = here.clock.now() - timedelta(minutes=10)
    old = {"authorization": await here.admin(lifetime=timedelta(minutes=5), now=earlier)}
    answer = await http.get("/kbs/v0/resource", headers=old)
    assert (answer.status_code, answer.json()["code"]) == (401, "bad-token")
    with pytest.raises(BadToken):
        await here.admin(lifetime=timedelta(hours=2))
    with pytest.raises(BadToken):
        await here.admin("everything")


async def test_a_machines_token_administers_nothing(here: BrokeredCluster) -> None:
    guest = await here.guest()
    await guest.attest()
    answer = await guest.http.get("/kbs/v0/resource", headers={"authorization": f"Bearer {guest.token}"})
    assert (answer.status_code, answer.json()["code"]) == (401, "bad-token")


async def test_nothing_is_written_when_the_record_cannot_be(here: BrokeredCluster) -> None:
    http, headers = await here.client(), {"authorization": await here.admin()}
    here.ledger.broken = True
    assert (await http.post(PATH, content=b"x", headers=headers)).status_code == 503
    assert (await http.get("/kbs/v0/resource", headers=headers)).json() == []


async def test_policies_become_appraisal_policies(here: BrokeredCluster) -> None:
    http, headers = await here.client(), {"authorization": await here.admin()}
    answer = await http.post("/kbs/v0/resource-policy", json=_body(ALLOW), headers=headers)
    assert answer.status_code == 200, answer.text
    answer = await http.post("/kbs/v0/attestation-policy", json=_body(TPM, policy_id="default_cpu"), headers=headers)
    assert answer.status_code == 200, answer.text
    policy = await here.cluster.get(APPRAISAL_POLICY.resource, "kbs-resource-policy")
    assert (policy["spec"]["for"], policy["spec"]["active"], policy["spec"]["rego"]) == ("*/*/*", True, ALLOW.decode())
    for tee in ("tpm", "tdx", "snp"):
        assert (await here.cluster.get(APPRAISAL_POLICY.resource, f"kbs-{tee}"))["spec"]["for"] == tee

    async def listed() -> bool:
        names = (await http.get("/kbs/v0/attestation-policy", headers=headers)).json()
        return {entry["policy-id"] for entry in names} == {"kbs-tpm", "kbs-tdx", "kbs-snp"}

    await until(listed)
    assert (await http.get("/kbs/v0/resource-policy", headers=headers)).json() == ["kbs-resource-policy"]


async def test_policies_that_are_none_are_refused_and_change_nothing(here: BrokeredCluster) -> None:
    http, headers = await here.client(), {"authorization": await here.admin()}
    for path, body, code in (
        ("resource-policy", {}, "bad-message"),
        ("resource-policy", [], "bad-message"),
        ("attestation-policy", "text", "bad-message"),
        ("resource-policy", {"policy": "///"}, "bad-message"),
        ("resource-policy", _body(b"\xff\xfe"), "bad-message"),
        ("resource-policy", _body(b"package policy\nallow {"), "bad-policy"),
        ("attestation-policy", _body(TPM), "bad-policy-id"),
        ("attestation-policy", _body(TPM, policy_id="../x"), "bad-policy-id"),
        ("attestation-policy", _body(b"nonsense", policy_id="tpm"), "bad-policy"),
    ):
        answer = await http.post(f"/kbs/v0/{path}", json=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text
    with pytest.raises(NotFound):
        await here.cluster.get(APPRAISAL_POLICY.resource, "kbs-resource-policy")


def _message(values: object, **more: str) -> dict[str, str]:
    payload = base64.b64encode(json.dumps(values).encode()).decode()
    return {"version": "0.1.0", "type": "sample", "payload": payload, **more}


async def test_reference_values_are_registered_by_name_replaced_and_taken_away(here: BrokeredCluster) -> None:
    http, headers = await here.client(), {"authorization": await here.admin()}

    async def register(values: object) -> None:
        answer = await http.post("/kbs/v0/reference-value", json=_message(values), headers=headers)
        assert answer.status_code == 200, answer.text

    async def query(name: str) -> object:
        answer = await http.get(f"/kbs/v0/reference-value/{name}", headers=headers)
        return answer.json() if answer.status_code == 200 else answer.status_code

    await register({"tpm_pcr4": ["aa", "bb"], "snp_smt_allowed": True})
    await register({"tpm_pcr4": ["cc"], "rvps:///ns/x": ["v"]})

    async def settled() -> bool:
        return await query("tpm_pcr4") == ["cc"]

    await until(settled)
    assert await query("snp_smt_allowed") is True
    assert await query("nothing") == 404
    await register({"tpm_pcr4": []})

    async def gone() -> bool:
        return await query("tpm_pcr4") == 404

    await until(gone)
    assert await query("snp_smt_allowed") is True
    stored = await here.cluster.get(REFERENCE_VALUE_SET.resource, "kbs-reference-values")
    assert stored["spec"]["source"] == "import"


async def test_messages_that_are_none_change_no_value(here: BrokeredCluster) -> None:
    http, headers = await here.client(), {"authorization": await here.admin()}
    for body in (
        {},
        _message({"a": "b"}, version="9"),
        _message({"a": "b"}, type="corim"),
        _message([]),
        _message({"a": {}}),
    ):
        answer = await http.post("/kbs/v0/reference-value", json=body, headers=headers)
        assert answer.status_code == 400, answer.text
    with pytest.raises(NotFound):
        await here.cluster.get(REFERENCE_VALUE_SET.resource, "kbs-reference-values")


async def test_values_are_not_added_beyond_what_a_set_may_hold(
    here: BrokeredCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastness.release.door.broker.values.MAX_VALUES", 2)
    http, headers = await here.client(), {"authorization": await here.admin()}
    assert (await http.post("/kbs/v0/reference-value", json=_message({"a": ["1"]}), headers=headers)).status_code == 200
    answer = await http.post("/kbs/v0/reference-value", json=_message({"b": ["1", "2"]}), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "too-many-values")
