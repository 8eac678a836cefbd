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
from fastness.machineconfig.installer_stub import is_unmanaged_pointer
from fastness.machineconfig.pointer import (
    pointer,
    user_data_secret,
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
    config = pointer("worker", TrustModel.CONFIDENTIAL_CLUSTER, DOORS, "ticket")
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
    config = pointer("infra", trust, DOORS, "ticket")
    [merge] = config["ignition"]["config"]["merge"]
    assert merge["source"] == "https://server:22624/config/infra"
    assert merge["httpHeaders"] == [{"name": "Authorization", "value": "Bearer ticket"}]
    [authority] = config["ignition"]["security"]["tls"]["certificateAuthorities"]
    assert dataurl.decode(authority["source"]).decode() == CA


@pytest.mark.parametrize("trust", list(TrustModel))
def test_a_pointer_is_a_config_that_ignition_accepts(trust: TrustModel) -> None:
    assert ignition.validate(pointer("worker", trust, DOORS, "t")) == ()


def test_there_is_no_pointer_without_tls_or_ca() -> None:
    with pytest.raises(BadPointer, match="not reached over TLS"):
        pointer("worker", TrustModel.NONE, Doors("", "http://server", CA), "t")
    with pytest.raises(BadPointer, match="CA of the config server"):
        pointer("worker", TrustModel.NONE, Doors("", "https://server"), "t")


def test_the_secret_belongs_to_the_pool_and_is_ready_for_machine_sets() -> None:
    made = user_data_secret(pool("infra"), pointer("infra", TrustModel.NONE, DOORS, "t"))
    meta = made["metadata"]
    assert (meta["name"], meta["namespace"]) == ("infra-user-data-managed", "openshift-machine-api")
    assert names.MANAGED_CA_LABEL in meta["labels"]
    assert "controller" not in meta["ownerReferences"][0]
    assert (made["type"], base64.b64decode(made["data"]["disableTemplating"])) == ("Opaque", b"true\n")
    assert data(made)["ignition"]["version"] == "3.2.0"
    assert not is_unmanaged_pointer(made)
