"""The whole way in a real machine: QEMU with OVMF and a TPM boots an image that carries the agent and the real Ignition.

What the image will measure was published from the file, before any machine booted it. The machine enrols, attests with its own
event log and quote, and lays down what the cluster signed for it and nothing of what its host gives to Ignition. The same image
with one word more on its command line gets nothing; that boot is for `make soak`. In the short form its two halves stand
elsewhere: what such a machine measures is refused and named (tests/unit/images/test_real_boot.py), and a machine that is refused
for one word more gets nothing (tests/e2e/bed/test_empty_machine.py).
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from fastness.attestation.values.from_images import values_of_measurement
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.formats import json
from fastness.sim.vms.guest import DOORS
from fastness.sim.vms.image import predicted
from tests.delivering import DeliveringWorld
from tests.e2e.delivery.ignition import HOSTILE_FILES, hostile
from tests.e2e.delivery.real_cluster import cluster, explained
from tests.embedded.fixtures import Embedded
from tests.measuredboot import joining
from tests.soaking import SOAK, soaking
from tests.swtpm import Maker

ENROLMENT, BROKER, GATE = 8000, 8080, 22623


async def joined(world: DeliveringWorld, uki: bytes, tpm: Path) -> joining.Joined:
    """Boot an image on a new machine and see how far it gets."""
    headers = [
        {"name": "Authorization", "value": f"Bearer {(await world.ticket()).reveal()}"},
        {"name": "X-Fastness-Server", "value": f"https://{DOORS}:{ENROLMENT}"},
    ]
    source = {"source": "http://127.0.0.1:22625/config/worker", "httpHeaders": headers}
    user_data = json.encode({"ignition": {"version": "3.2.0", "config": {"merge": [source]}}})
    ports = {ENROLMENT: world.doors.enrolment.port, BROKER: world.doors.broker.port, GATE: world.gate.port}
    return await asyncio.to_thread(joining.join, uki, tpm, ports, user_data, hostile({}))


@pytest.mark.long("a machine boots under emulation with the agent and Ignition in its image")
@pytest.mark.parametrize(
    "via", ["Gate", soaking("Broker", why="agent and Ignition go this way in tests/e2e/delivery/test_ignition.py")]
)
async def test_a_machine_gets_its_configuration_for_the_image_that_was_approved_and_for_no_other(
    real_server: Embedded, tpm_maker: Maker, via: str
) -> None:
    joining.require_joining()
    tpm, other = tpm_maker.provision("one"), tpm_maker.provision("other")
    async with cluster(real_server, tpm_maker, via, (DOORS,)) as world:
        doors = f"https://{DOORS}"
        world.urls[0] = DoorUrls(f"{doors}:{BROKER}", f"{doors}:{GATE}")
        uki = await asyncio.to_thread(joining.image, world.trust_json)
        await world.publish(values_of_measurement(predicted(uki)))

        good = await joined(world, uki, tpm)
        assert (good.ignition, good.agent) == (0, 0), f"{good.console}\n{good.log}"
        assert good.files["etc/fastness/secret"] == hashlib.sha256(b"for this machine").hexdigest()
        assert "etc/systemd/system/hello.service" in good.files
        assert not HOSTILE_FILES & good.files.keys(), good.files
        explanation = await explained(real_server, world, attested=True)
        assert f"pool worker, server https://{DOORS}:{ENROLMENT}, ticket sha256:" in explanation, explanation
        assert "Ignition has the configuration of worker-" in good.console

        if via == "Broker" or not SOAK:
            return  # what a refusal is does not depend on the way
        changed = await asyncio.to_thread(joining.image, world.trust_json, joining.COMMAND_LINE + b" debug")
        requests = len(world.shelf.requests)
        bad = await joined(world, changed, other)
        assert bad.ignition != 0, bad.log
        assert bad.agent == 1, bad.console
        assert bad.files == {}
        assert len(world.shelf.requests) == requests
        assert "this machine gets no configuration (value-differs)" in bad.console
        explanation = await explained(real_server, world)
        assert "FAIL  PCR 11" in explanation, explanation
        assert "EV_IPL" in explanation, explanation
