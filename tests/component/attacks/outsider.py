"""Somebody who has a join ticket, the address of the doors, and what everybody may read; and the doors of an enforcing cluster.

    async with fortress(tmp_path) as site:
        refused = await site.attest(SoftwareKey("tpm", key))
        await site.gave_nothing()

The fortress is everything between a machine and its node: enrolment, broker and gate over TLS, and the loops that decide about
certificates. There is a configuration and a pool secret to steal. `gave_nothing` asks for all of it with what the outsider got.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.enrol import first_message, read_offer, second_message
from fastness.agent.boot.prove import BrokerClient, BrokerRefused
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.enrolment.live import bootstrap_tokens as bootstrap
from fastness.enrolment.live.approvals import REQUESTS
from fastness.formats import json
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.protocol.disk_report import DiskReport
from fastness.protocol.guest_key import SignedByBoot
from fastness.release.door.gate.server import GateDoor, gate
from fastness.release.live.signed_configs import ServedConfigs
from fastness.sim.tee.images import PCRS, default_image
from fastness.sim.tee.writers import tpm2
from fastness.sim.tee.writers.keys import EcKey
from tests.attesting import ENTROPY
from tests.delivering import Shelf
from tests.embedded.fixtures import Embedded
from tests.enrolling import MemoryRecord
from tests.joining import CSRS, JoiningSite, Place, client_request, joining, new_key
from tests.patience import PATIENCE

SECRET = b"what only machines of this pool may know"


class SoftwareKey:
    """A P-256 key in a file, in the role of a machine's identity; the kind of evidence is what its owner says it is."""

    def __init__(self, tee: str, key: EcKey | None = None) -> None:
        self.tee = tee
        self.key = key or EcKey(ENTROPY)

    @property
    def thumbprint(self) -> str:
        """As the record names it."""
        return f"sha256:{hashlib.sha256(self.key.public_der()).hexdigest()}"

    async def identity_public(self) -> bytes:
        """As a TPM would describe it where one is claimed."""
        return tpm2.sized(tpm2.attestation_area(self.key)) if self.tee == "tpm" else self.key.public_der()

    async def ek_certificates(self) -> list[bytes]:
        """Nobody certified anything."""
        return []

    async def ek_public(self) -> bytes:
        """The same key again."""
        return tpm2.sized(tpm2.endorsement_area(self.key))

    async def activate(self, credential: bytes, secret: bytes) -> SecretBytes:
        """A guess: there is no TPM that could open it."""
        return SecretBytes(hashlib.sha256(credential + secret).digest())

    async def sign(self, message: bytes) -> bytes:
        """Whatever it is asked to."""
        return self.key.raw(message)

    async def sign_as_boot(self, message: bytes) -> SignedByBoot | None:
        """The same key again, whatever is claimed to have booted."""
        return SignedByBoot(self.key.public_der(), self.key.raw(message)) if self.tee == "tdx" else None

    async def measure(self, event: bytes) -> None:
        """Nothing: a key in software has no registers."""

    async def leave_initrd(self) -> bool:
        """Says so, and has no register that would show it."""
        return True

    async def opened(self, disks: Sequence[DiskReport]) -> None:
        """Nothing: it has no disks."""

    async def disks(self) -> Sequence[DiskReport]:
        """None."""
        return ()

    async def started_with(self, init_data: str) -> None:
        """Nothing: it takes no user-data."""

    async def init_data(self) -> str:
        """None."""
        return ""

    async def evidence(self, report_data: bytes) -> JsonObject:
        """A TPMS_ATTEST by hand, over the registers that the image is published with."""
        image = default_image()
        digest = hashlib.sha256(b"".join(image.pcrs)).digest()
        area = tpm2.attestation_area(self.key)
        message = tpm2.attest(
            tpm2.name_of(area), report_data, tpm2.clock_info(40_000, 1, 0), [tpm2.selection("sha256", range(PCRS))], digest,
            firmware=1,
        )  # fmt: skip
        return {
            "ak_public": _b64(self.key.public_der()),
            "tpm_quote": {
                "message": _b64(message), "signature": _b64(tpm2.signature(self.key, message)),
                "pcrs": [register.hex() for register in image.pcrs],
            },
            "event_log": _b64(image.event_log),
        }  # fmt: skip


@dataclass
class Fortress:
    """A cluster that enforces attestation, as an outsider meets it."""

    site: JoiningSite
    gate: GateDoor
    shelf: Shelf
    ticket: SecretText
    control_plane: Any = None
    """The API as the control plane itself has it, without admission of people."""

    async def enrol(self, attester: Attester) -> httpx.Response:
        """Both messages of enrolment by hand; the answer that ended it."""
        world = self.site.world
        url = f"https://127.0.0.1:{world.doors.enrolment.port}"
        async with httpx.AsyncClient(base_url=url, verify=world.trust, trust_env=False, timeout=PATIENCE) as http:
            headers = {"content-type": "application/json", "authorization": f"Bearer {self.ticket.reveal()}"}
            begun = await http.post("/v1/enrol", content=await first_message(attester), headers=headers)
            if begun.status_code != 200:
                return begun
            proof = await second_message(attester, read_offer(begun.content))
            return await http.post("/v1/enrol/complete", content=proof, headers=headers)

    async def attest(self, attester: Attester) -> tuple[int, str]:
        """Status and code of the broker's refusal; after it the session opens nothing. Fails when it gives a token."""
        async with self.site.world.broker(attester) as broker:
            try:
                await broker.attest()
            except BrokerRefused as refused:
                await self._session_opens_nothing(broker)
                return refused.status, refused.reason
        raise AssertionError("the broker gave a token")

    async def _session_opens_nothing(self, broker: BrokerClient) -> None:
        for path in ("pool/worker/secret", "pool/worker/config", "default/attestation-status/status"):
            with pytest.raises(BrokerRefused) as refused:
                await broker.resource(path)
            assert refused.value.status == 401, path

    async def record(self) -> list[JsonObject]:
        """What stands on the record."""
        batches = (await self.site.world.cluster.list(AUDIT_BATCH.resource)).items
        return [entry for batch in batches for entry in batch["spec"]["entries"]]

    async def recorded(self, what: str, who: str, code: str) -> bool:
        """Whether a refusal stands on the record."""
        return any(
            (entry["what"], entry["who"], (entry.get("detail") or {}).get("code")) == (what, who, code)
            for entry in await self.record()
        )

    async def gave_nothing(self, *, machines: int) -> None:
        """No byte, no certificate, no node, no verdict in anybody's favour; so many Machines, and none that ever attested."""
        cluster = self.site.world.cluster
        trust = ssl.create_default_context(cadata=self.gate.doors.bundle)
        async with httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{self.gate.port}", verify=trust, trust_env=False
        ) as http:
            for authorization in ("", f"Bearer {self.ticket.reveal()}", "DPoP e30.e30.e30"):
                answer = await http.get(
                    "/config/worker", headers={"authorization": authorization} if authorization else {}
                )
                assert answer.status_code == 401, authorization
                assert SECRET not in answer.content
        assert self.shelf.requests == []
        enrolled = (await cluster.list(MACHINE.resource)).items
        assert len(enrolled) == machines
        assert [machine["metadata"]["name"] for machine in enrolled if machine["status"].get("lastAttested")] == []
        assert (await cluster.list(VERDICT.resource)).items == []
        for machine in enrolled:
            await self._no_certificate(str(machine["status"]["nodeName"]))
        secrets = (await cluster.list(SECRETS)).items
        assert [secret["metadata"]["name"] for secret in secrets if secret.get("type") == bootstrap.TYPE] == []
        assert (await cluster.list(NODE.resource)).items == []
        assert not any(entry["what"] in ("release", "join", "attested") for entry in await self.record())

    async def _no_certificate(self, node: str) -> None:
        """Nobody may ask to become the node without a token of the broker; of those that others ask for none is approved."""
        request = client_request(new_key(), node)
        async with self.site.client() as nobody, self.site.client("abcdef.0123456789abcdef") as guess:
            for http in (nobody, guess):
                assert (await http.post(CSRS, json=request)).status_code in (401, 403)
        assert (await self.site.world.cluster.list(REQUESTS)).items == []


@asynccontextmanager
async def fortress(directory: Path, *, simulated: bool = False, **spec: Any) -> AsyncIterator[Fortress]:
    """An enforcing cluster with everything that somebody could want, for the time of the block."""
    async with AsyncExitStack() as ending:
        options = ServerOptions(directory / "state", simulated=simulated)
        server = await ending.enter_async_context(open_apiserver(options, PRODUCT))
        place = Place.embedded(Embedded(server, directory / "state"))
        site = await ending.enter_async_context(
            joining(place, spec={"mode": "Enforce", "simulated": simulated, **spec})
        )
        world, shelf = site.world, Shelf(SECRET)
        for tee in ("tpm", "snp", "tdx"):
            await world.approve(tee)
        await world.keep("pool/worker/secret", SECRET)
        served = await ServedConfigs.open(world.cluster, world.informers, world.clock, ENTROPY, shelf)
        async with gate(world.cluster, world.informers, served, MemoryRecord(), world.clock, ENTROPY) as door:
            yield Fortress(site, door, shelf, await world.ticket(), server.cluster)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal of enrolment."""
    return answer.status_code, str(json.decode(answer.content).get("code"))


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
