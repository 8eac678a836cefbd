"""Pointers that an installer made: which of them are ours to change, and what becomes of those."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig import ignition
from fastness.machineconfig.installer_stub import (
    brought,
    is_brought,
    is_legacy,
    is_unmanaged_pointer,
    leads_here,
    pool_of,
    says_so,
    with_ca,
)
from fastness.machineconfig.pointer import pointer, user_data_secret
from fastness.machineconfig.render.errors import BadPointer
from tests.unit.machineconfig.build import pool

NOW = "2026-01-01T00:00:00Z"


def certificate(content: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n"


OURS, NEXT, THEIRS = certificate("b3Vycw=="), certificate("bmV4dA=="), certificate("dGhlaXJz")


def stub(*authorities: str, version: str = "2.2.0", **more: Any) -> dict[str, Any]:
    entries = [{"source": dataurl.encode(pem.encode())} for pem in authorities]
    head = {
        "version": version,
        "config": {"append": [{"source": "https://api-int:22623/config/worker"}]},
        "security": {"tls": {"certificateAuthorities": entries}},
    }
    return {"ignition": head, **more}


def secret(document: dict[str, Any], **labels: str) -> dict[str, Any]:
    body = base64.b64encode(json.encode(document)).decode()
    return {
        "metadata": {"name": "worker-user-data", "labels": labels},
        "data": {"userData": body, "disableTemplating": "dHJ1ZQo="},
    }


def patched(before: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    meta = {**before["metadata"], "annotations": {**before["metadata"].get("annotations", {})}}
    meta["annotations"].update(patch["metadata"]["annotations"])
    return {**before, "metadata": meta, "data": {**before["data"], **patch["data"]}}


def content(holder: dict[str, Any]) -> Any:
    return json.decode(base64.b64decode(holder["data"]["userData"]))


def authorities(holder: dict[str, Any]) -> str:
    [entry] = content(holder)["ignition"]["security"]["tls"]["certificateAuthorities"]
    return dataurl.decode(entry["source"]).decode()


def managed(ticket: str = "t1", trust: TrustModel = TrustModel.NONE) -> dict[str, Any]:
    doors = Doors("https://gate:22623", "https://server:22624", OURS)
    return user_data_secret(pool(), pointer("worker", trust, doors, ticket, "3.4.0"))


@pytest.mark.parametrize("bundle", [THEIRS, OURS + THEIRS, "", "no certificate at all", "-----BEGIN CERTIFICATE-----"])
def test_not_one_byte_of_a_stub_changes_that_trusts_somebody_else(bundle: str) -> None:
    assert with_ca(secret(stub(bundle)), OURS + NEXT) is None


@pytest.mark.parametrize("source", ["https://elsewhere/ca.pem", "data:;base64,!!!", 7, None])
def test_an_authority_that_cannot_be_read_here_is_not_ours(source: Any) -> None:
    document = stub(OURS)
    document["ignition"]["security"]["tls"]["certificateAuthorities"][0]["source"] = source
    assert with_ca(secret(document), OURS + NEXT) is None


def test_a_stub_that_trusts_the_doors_alone_gets_their_authority_of_today_and_nothing_else_changes() -> None:
    before = secret(stub(OURS))
    patch = with_ca(before, OURS + NEXT)
    assert patch is not None
    after = patched(before, patch)
    assert authorities(after) == OURS + NEXT
    assert content(after)["ignition"]["config"] == content(before)["ignition"]["config"]
    assert content(after)["ignition"]["version"] == "2.2.0"
    assert after["data"]["disableTemplating"] == before["data"]["disableTemplating"]
    assert with_ca(after, OURS + NEXT) is None


def test_what_we_wrote_last_stays_ours_when_the_doors_have_forgotten_that_authority() -> None:
    before = secret(stub(OURS))
    after = patched(before, with_ca(before, OURS + NEXT) or {})
    patch = with_ca(after, NEXT)
    assert patch is not None
    assert authorities(patched(after, patch)) == NEXT
    by_hand = {**after, "data": secret(stub(OURS))["data"]}
    assert with_ca(by_hand, NEXT) is None, "somebody put another content there since"


def test_several_authorities_with_ours_among_them_are_not_guessed_at_and_others_are_nobodys_business() -> None:
    with pytest.raises(BadPointer, match="2 authorities, and ours is one of them"):
        with_ca(secret(stub(OURS, THEIRS)), OURS + NEXT)
    assert with_ca(secret(stub(THEIRS, THEIRS)), OURS + NEXT) is None


@pytest.mark.parametrize(
    "body", ["", "!!!", base64.b64encode(b"#cloud-config").decode(), base64.b64encode(b"[]").decode()]
)
def test_what_is_no_pointer_is_left_alone(body: str) -> None:
    other = {"metadata": {"name": "x"}, "data": {"userData": body}}
    assert not is_unmanaged_pointer(other)
    assert with_ca(other, OURS) is None
    assert brought(other, managed(), "3.2.0", NOW) is None
    assert not is_legacy(other)
    assert not leads_here(other, OURS)


def test_a_brought_stub_lets_a_machine_in_and_follows_the_managed_secret_from_then_on() -> None:
    before = secret(stub(THEIRS))
    patch = brought(before, managed(), "3.1.0", NOW)
    assert patch is not None
    after = patched(before, patch)
    document = content(after)
    assert ignition.validate(document) == ()
    assert document["ignition"]["version"] == "3.1.0"
    merge = document["ignition"]["config"]["merge"][0]
    assert merge["source"] == "https://server:22624/config/worker"
    assert merge["httpHeaders"] == [{"name": "Authorization", "value": "Bearer t1"}]
    assert authorities(after) == OURS
    notes = after["metadata"]["annotations"]
    assert (notes[names.STUB_UPGRADED_TO], notes[names.STUB_UPGRADED_AT]) == ("3.1.0", NOW)
    assert is_brought(after)
    assert brought(after, managed(), "3.1.0", "later") is None
    tomorrow = brought(after, managed("t2"), "3.1.0", "later")
    assert tomorrow is not None
    assert "Bearer t2" in base64.b64decode(tomorrow["data"]["userData"]).decode()
    assert names.STUB_UPGRADED_AT not in tomorrow["metadata"]["annotations"], "it was brought once"
    assert is_brought(patched(after, tomorrow))


def test_a_brought_stub_that_somebody_edited_is_not_ours_any_more() -> None:
    before = secret(stub(THEIRS))
    after = patched(before, brought(before, managed(), "3.1.0", NOW) or {})
    assert not is_brought({**after, "data": before["data"]})


@pytest.mark.parametrize(
    "document",
    [
        stub(OURS, storage={"files": [{"path": "/a"}]}),
        stub(OURS, version="1.0.0"),
        {"ignition": {"version": "2.2.0", "config": {"merge": []}}},
    ],
)
def test_a_stub_with_more_in_it_is_not_brought(document: dict[str, Any]) -> None:
    with pytest.raises(BadPointer, match="not a plain spec 2 stub"):
        brought(secret(document), managed(), "3.2.0", NOW)


def maker(version: str = "", user_data: str = "worker-user-data") -> dict[str, Any]:
    value = {"userDataSecret": {"name": user_data}}
    notes = {names.POINTER_VERSION: version} if version else {}
    meta = {"name": "workers", "namespace": "x", "annotations": notes}
    return {"metadata": meta, "spec": {"template": {"spec": {"providerSpec": {"value": value}}}}}


def test_a_person_says_so_on_every_set_that_uses_it_and_on_one_at_least() -> None:
    assert says_so("worker-user-data", [maker("3.2"), maker("3.4"), maker("", "other")])
    assert not says_so("worker-user-data", [maker("3.2"), maker()])
    assert not says_so("worker-user-data", [])


def test_a_stub_leads_here_when_it_trusts_the_doors_and_nobody_else() -> None:
    assert leads_here(secret(stub(OURS)), OURS + NEXT)
    assert not leads_here(secret(stub(OURS, THEIRS)), OURS + NEXT)
    assert not leads_here(secret(stub()), OURS + NEXT)


def test_the_pool_of_a_stub_is_in_its_name() -> None:
    assert pool_of({"metadata": {"name": "infra-user-data"}}) == "infra"
    assert pool_of({"metadata": {"name": "something"}}) == ""
