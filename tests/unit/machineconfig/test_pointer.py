"""What a new machine boots with, by trust model, and the Secret around it."""

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
from fastness.machineconfig.pointer import (
    is_unmanaged_pointer,
    pointer,
    pointer_version,
    upgraded,
    user_data_secret,
    with_ca,
)
from fastness.machineconfig.render.errors import BadPointer
from tests.unit.machineconfig.build import pool

CA = "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n"
DOORS = Doors("https://gate:22623", "https://server:22624", CA)


def data(secret: dict[str, Any]) -> Any:
    return json.decode(base64.b64decode(secret["data"]["userData"]))


def secret(stub: dict[str, Any], **labels: str) -> dict[str, Any]:
    body = base64.b64encode(json.encode(stub)).decode()
    return {"metadata": {"name": "worker-user-data", "labels": labels}, "data": {"userData": body}}


def test_a_confidential_machine_asks_the_forwarder_on_its_own_loopback_and_gets_no_ca() -> None:
    config = pointer(pool(), TrustModel.CONFIDENTIAL_CLUSTER, DOORS, "ticket")
    assert config == {
        "ignition": {
            "version": "3.2.0",
            "config": {
                "merge": [
                    {
                        "source": "http://127.0.0.1:22625/config/worker",
                        "httpHeaders": [
                            {"name": "Authorization", "value": "Bearer ticket"},
                            {"name": "X-Fastness-Server", "value": "https://gate:22623"},
                        ],
                    }
                ]
            },
        }
    }


@pytest.mark.parametrize("trust", [TrustModel.NONE, TrustModel.CONTAINERS_HOST])
def test_other_machines_ask_the_config_server_with_its_ca(trust: TrustModel) -> None:
    config = pointer(pool("infra"), trust, DOORS, "ticket")
    [merge] = config["ignition"]["config"]["merge"]
    assert merge["source"] == "https://server:22624/config/infra"
    assert merge["httpHeaders"] == [{"name": "Authorization", "value": "Bearer ticket"}]
    [authority] = config["ignition"]["security"]["tls"]["certificateAuthorities"]
    assert dataurl.decode(authority["source"]).decode() == CA


@pytest.mark.parametrize("trust", list(TrustModel))
def test_a_pointer_is_a_config_that_ignition_accepts(trust: TrustModel) -> None:
    assert ignition.validate(pointer(pool(), trust, DOORS, "t")) == ()


@pytest.mark.parametrize(("requested", "version"), [("3.1", "3.1.0"), ("3.5.0", "3.5.0"), ("", "3.2.0")])
def test_the_pool_may_choose_the_version(requested: str, version: str) -> None:
    chosen = pool()
    chosen["metadata"]["annotations"] = {names.POINTER_VERSION: requested}
    assert pointer_version(chosen) == version


@pytest.mark.parametrize("requested", ["2.2.0", "3.0.0", "3.9.0", "x"])
def test_a_version_that_cannot_carry_the_ticket_is_refused(requested: str) -> None:
    chosen = pool()
    chosen["metadata"]["annotations"] = {names.POINTER_VERSION: requested}
    with pytest.raises(BadPointer, match="carries a header") as caught:
        pointer(chosen, TrustModel.NONE, DOORS, "t")
    assert "3.1.0" in caught.value.hint


def test_there_is_no_pointer_without_tls_or_ca() -> None:
    with pytest.raises(BadPointer, match="not reached over TLS"):
        pointer(pool(), TrustModel.NONE, Doors("", "http://server", CA), "t")
    with pytest.raises(BadPointer, match="CA of the config server"):
        pointer(pool(), TrustModel.NONE, Doors("", "https://server"), "t")


def test_the_secret_belongs_to_the_pool_and_is_ready_for_machine_sets() -> None:
    made = user_data_secret(pool("infra"), pointer(pool("infra"), TrustModel.NONE, DOORS, "t"))
    meta = made["metadata"]
    assert (meta["name"], meta["namespace"]) == ("infra-user-data-managed", "openshift-machine-api")
    assert names.MANAGED_CA_LABEL in meta["labels"]
    assert "controller" not in meta["ownerReferences"][0]
    assert (made["type"], base64.b64decode(made["data"]["disableTemplating"])) == ("Opaque", b"true\n")
    assert data(made)["ignition"]["version"] == "3.2.0"
    assert not is_unmanaged_pointer(made)


LEGACY = {
    "ignition": {
        "version": "2.2.0",
        "config": {"append": [{"source": "https://api-int:22623/config/worker"}]},
        "security": {"tls": {"certificateAuthorities": [{"source": "data:,old"}]}},
    }
}


def test_a_new_ca_goes_into_an_installers_pointer_and_nothing_else_changes() -> None:
    pointer_secret = secret(LEGACY)
    assert is_unmanaged_pointer(pointer_secret)
    changed = with_ca(pointer_secret, CA)
    assert changed is not None
    after = data({"data": changed})
    assert dataurl.decode(after["ignition"]["security"]["tls"]["certificateAuthorities"][0]["source"]).decode() == CA
    assert after["ignition"]["config"] == LEGACY["ignition"]["config"]
    assert with_ca({**pointer_secret, "data": changed}, CA) is None


def test_two_authorities_are_not_guessed_at() -> None:
    two = json.decode(json.encode(LEGACY))
    two["ignition"]["security"]["tls"]["certificateAuthorities"].append({"source": "data:,b"})
    with pytest.raises(BadPointer, match="2 authorities"):
        with_ca(secret(two), CA)


@pytest.mark.parametrize(
    "body", ["", "!!!", base64.b64encode(b"#cloud-config").decode(), base64.b64encode(b"[]").decode()]
)
def test_what_is_no_pointer_is_left_alone(body: str) -> None:
    other = {"metadata": {"name": "x"}, "data": {"userData": body}}
    assert not is_unmanaged_pointer(other)
    assert with_ca(other, CA) is None
    assert upgraded(other) is None


def test_a_spec_2_stub_is_brought_to_spec_3_once() -> None:
    pointer_secret = secret(LEGACY)
    changed = upgraded(pointer_secret, "3.1.0")
    assert changed is not None
    after = data({"data": changed})
    assert after["ignition"]["version"] == "3.1.0"
    assert after["ignition"]["config"] == {"merge": LEGACY["ignition"]["config"]["append"]}  # type: ignore[index]
    assert [problem for problem in ignition.validate(after) if problem.severity == "error"] == []
    assert upgraded({**pointer_secret, "data": changed}) is None


def test_a_stub_with_more_in_it_is_not_touched() -> None:
    with pytest.raises(BadPointer, match="section storage"):
        upgraded(secret({**LEGACY, "storage": {"files": [{"path": "/a"}]}}))


def infrastructure(uri: str, platform: str = "", **status: Any) -> dict[str, Any]:
    return {"status": {"apiServerInternalURI": uri, "platformStatus": {"type": platform, **status}}}
