"""Whoever writes a field that a kind had once reads the name of today."""

from __future__ import annotations

import pytest

from fastness.kinds.machineconfiguration.names import API_VERSION
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from tests.embedded.fixtures import Embedded

OLD = {
    "apiVersion": API_VERSION, "kind": "MachineOSConfig", "metadata": {"name": "worker"},
    "spec": {
        "machineConfigPool": {"name": "worker"}, "buildOutputs": {"currentImagePullSecret": {"name": "x"}},
        "buildInputs": {"baseOSImagePullspec": "registry.example.com/os:1", "renderedImagePushspec": "registry.example.com/os:2"},
    },
}  # fmt: skip


@pytest.mark.row("003-45")
async def test_fields_of_the_first_proposal_are_answered_with_those_of_today(embedded_server: Embedded) -> None:
    async with embedded_server.client() as http:
        path = MACHINE_OS_CONFIG.resource.path()
        answer = await http.post(path, params={"fieldValidation": "Strict"}, json=OLD)
        assert answer.status_code == 400
        message = answer.json()["message"]
        assert 'unknown field "spec.buildInputs" (today its members stand in spec itself: imageBuilder' in message
        assert "baseOSImagePullspec is osImageURL of a MachineConfig" in message
        assert 'unknown field "spec.buildOutputs" (today nodes pull with the pull secret' in message
        plain = {**OLD, "spec": {"other": 1}}
        refused = await http.post(path, params={"fieldValidation": "Strict"}, json=plain)
        assert refused.json()["message"] == 'strict decoding error: unknown field "spec.other"'
