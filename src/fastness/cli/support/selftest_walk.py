"""A made-up machine from its ticket to its configuration and to its refusal, or a stranger who is refused: `fastness selftest`.

The vendor of the machine is the same in every run and known to everybody, so its roots mean something only in a cluster that says
`simulated` on every verdict. Where another simulated vendor is announced, it is left alone and the test says so. What the test
makes it takes away again: the ticket, the approval of the image, and the Machine.

A cluster without kinds of machine configs has no configuration to give. The gate is asked all the same: it must know the machine,
and answer that there is none yet.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.enrol import Enrolled, EnrolmentFailed, HttpTransport, RetryBudget, enrol
from fastness.agent.boot.fetch import GateRefused, check_delivered, from_gate, own_thumbprint
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.prove import BrokerClient, BrokerRefused
from fastness.attestation.live.simulated_vendor import NAME as VENDOR
from fastness.attestation.values.from_images import MEASUREMENTS
from fastness.crypto.digests import sha256
from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import join_ticket, mint, ticket_hash
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import AlreadyExists, ApiError, NotFound
from fastness.kube.port import Cluster
from fastness.protocol.config_proof import BadConfigProof, Served
from fastness.protocol.delivered import Question
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.runtime.errors import FastnessError
from fastness.runtime.retries import retry
from fastness.sim.announce import announce_vendor
from fastness.sim.hardware import AS_IT_SHOULD, Conditions, Silicon
from fastness.sim.tee.images import default_image
from fastness.sim.tee.vendor import SimVendor

STATUS: Final = "default/attestation-status/status"
IMAGE: Final = "fastness-selftest"
ACCEPT: Final = "application/vnd.coreos.ignition+json;version=3.4.0"
TICKET_LIFETIME: Final = timedelta(minutes=10)
PAUSE_SECONDS: Final = 0.5
CONNECT_SECONDS: Final = 5.0
NOTHING_YET: Final = ("not-rendered", "unknown-pool")
NONCE_BYTES: Final = 24
CLOCK, ENTROPY = SystemClock(), SystemEntropy()
Tell = Callable[[str], None]


class SelftestFailed(FastnessError):
    """A door did not do what it is there for."""

    code = "selftest-failed"


@dataclass(frozen=True, slots=True)
class DoorsAt:
    """Where the doors are, and whom to believe there; without a `gate` nobody asks for a configuration."""

    enrolment: str
    broker: str
    trust: ImageTrust
    gate: str = ""


def trust_of(ca: str, jwks: bytes) -> ImageTrust:
    """What an image would believe: an authority of doors, and keys of configurations if there are any; raises SelftestFailed."""
    try:
        keys = json.decode(jwks)["keys"] if jwks else []
    except (JsonError, KeyError, TypeError) as error:
        hint = "Take jwks.json of the ConfigMap config-public-keys."
        raise SelftestFailed("the keys of configurations are not a JWKS", hint) from error
    if keys:
        return ImageTrust.parse(json.encode({"ca": ca, "configKeys": keys}))
    return ImageTrust(ssl.create_default_context(cadata=ca), {})


async def until_answered(doors: DoorsAt, seconds: float) -> None:
    """Wait until each door answers with a certificate of its authority, for so long at most; what is wrong then shows later."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for url in filter(None, (doors.enrolment, doors.broker, doors.gate)):
                await retry(partial(_connect, url, doors.trust.tls), OSError, lambda _: PAUSE_SECONDS, CLOCK)


async def until_made(cluster: Cluster, seconds: float) -> None:
    """Wait until there is a ConfidentialCluster, for so long at most; raises ApiError."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await retry(
                partial(cluster.get, CONFIDENTIAL_CLUSTER.resource, NAME), NotFound, lambda _: PAUSE_SECONDS, CLOCK
            )


async def _connect(url: str, tls: ssl.SSLContext) -> None:
    place = urlsplit(url)
    async with asyncio.timeout(CONNECT_SECONDS):
        _, writer = await asyncio.open_connection(place.hostname, place.port or 443, ssl=tls)
    writer.close()
    await writer.wait_closed()


async def knock(doors: DoorsAt, tell: Tell) -> None:
    """A stranger: a machine that nobody knows, with a ticket that nobody made; raises SelftestFailed, AgentError."""
    board = Silicon(SimVendor(ENTROPY), "tpm", serial=1)
    attester = await board.power_on(AS_IT_SHOULD)
    try:
        async with HttpTransport(doors.enrolment, doors.trust.tls) as transport:
            await enrol(transport, attester, mint(ENTROPY), RetryBudget(CLOCK, ENTROPY, 5, pause=PAUSE_SECONDS))
    except EnrolmentFailed as refused:
        tell(f"a ticket that nobody made is refused: {refused.reason}")
    else:
        raise SelftestFailed("enrolment let a stranger in", "Stop its Deployment, and look at `fastness machine list`.")
    await _refused(doors, board, AS_IT_SHOULD, "a machine that never enrolled", tell)


async def walk(cluster: Cluster, doors: DoorsAt, pool: str, tell: Tell, *, configured: bool = True) -> None:
    """A made-up machine, from end to end; raises SelftestFailed, AgentError, ApiError.

    `configured` says that the pool has a configuration.
    """
    await _require_simulated(cluster)
    vendor = SimVendor()
    await _require_vendor(cluster, vendor)
    board = Silicon(vendor, "tpm", serial=int.from_bytes(ENTROPY.token(3), "big"))
    async with _approved_image(cluster), _ticket(cluster, pool) as ticket:
        attester = await board.power_on(AS_IT_SHOULD)
        async with HttpTransport(doors.enrolment, doors.trust.tls) as transport:
            enrolled = await enrol(transport, attester, ticket, RetryBudget(CLOCK, ENTROPY, 15, pause=PAUSE_SECONDS))
        tell(f"enrolled as {enrolled.name}")
        async with (
            _forgotten(cluster, enrolled),
            BrokerClient(doors.broker, doors.trust.tls, attester, ENTROPY) as broker,
        ):
            await _attested(broker)
            tell("attested")
            if (await broker.resource(STATUS)).reveal() != b"success":
                raise SelftestFailed("an attested machine did not get what it may read", "See `fastness audit show`.")
            tell(f"read {STATUS}")
            if doors.gate:
                await _fetched(doors, broker, attester, enrolled, configured, tell)
            await _refused(
                doors, board, Conditions(boot_loader=True), "the same machine with another boot loader", tell
            )


async def _fetched(
    doors: DoorsAt, broker: BrokerClient, attester: Attester, enrolled: Enrolled, configured: bool, tell: Tell
) -> None:
    """The gate gives the configuration of its pool, signed for this machine and this request; raises SelftestFailed, GateRefused.

    Without a configuration it says that there is none yet, to a machine that it recognised.
    """
    nonce = base64.urlsafe_b64encode(ENTROPY.token(NONCE_BYTES)).decode().rstrip("=")
    question = Question(nonce, ACCEPT)
    try:
        delivered = await from_gate(doors.gate, doors.trust.tls, broker, enrolled.pool, question, CLOCK.now)
    except GateRefused as refused:
        if configured or refused.reason not in NOTHING_YET:
            raise
        tell("the gate knows the machine, and has no configuration for it yet")
        return
    served = Served(delivered.config, enrolled.pool, enrolled.machine, nonce, key=await own_thumbprint(attester))
    try:
        check_delivered(delivered, served, doors.trust.keys, CLOCK.now())
    except BadConfigProof as error:
        raise SelftestFailed(
            f"the gate gave a configuration that does not count: {error.detail}", error.code
        ) from error
    tell(f"got the configuration of pool {enrolled.pool} from the gate, signed for this machine")


async def _attested(broker: BrokerClient) -> None:
    """Attest; the values of an image that was approved a moment ago may still be on their way."""
    while True:
        try:
            await broker.attest()
        except BrokerRefused:
            await asyncio.sleep(PAUSE_SECONDS)  # the caller's timeout ends it
        else:
            return


async def _refused(doors: DoorsAt, board: Silicon, conditions: Conditions, who: str, tell: Tell) -> None:
    """Attesting under these conditions is refused for good; raises SelftestFailed."""
    attester = await board.power_on(conditions)
    async with BrokerClient(doors.broker, doors.trust.tls, attester, ENTROPY) as broker:
        try:
            await broker.attest()
        except BrokerRefused as refused:
            if refused.passing:
                raise SelftestFailed(f"the broker cannot decide now: {refused.message}", refused.hint) from refused
            tell(f"{who} is refused: {refused.reason}")
            return
    raise SelftestFailed(f"the broker let in {who}", "Stop its Deployment, and look at `fastness audit show`.")


async def _require_simulated(cluster: Cluster) -> None:
    try:
        spec = (await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)).get("spec") or {}
    except NotFound:
        spec = {}
    if spec.get("simulated") is not True or spec.get("mode") != "Enforce":
        raise SelftestFailed(
            "the ConfidentialCluster is not one that enforces and is simulated",
            "No machine can be made up here: run `fastness selftest --stranger`.",
        )


async def _require_vendor(cluster: Cluster, vendor: SimVendor) -> None:
    """The vendor of the test is the one that is announced; raises SelftestFailed."""
    try:
        announced = await cluster.get(CONFIG_MAP.resource, VENDOR, NAMESPACE)
    except NotFound:
        await announce_vendor(cluster, vendor, CLOCK.now())
        return
    roots = str((announced.get("data") or {}).get("roots", ""))
    if not all(root in roots for root in vendor.roots.tpm):
        raise SelftestFailed("another simulated vendor is announced here", "Its simulator tests this cluster already.")
    await announce_vendor(cluster, vendor, CLOCK.now())


@asynccontextmanager
async def _approved_image(cluster: Cluster) -> AsyncIterator[None]:
    manifest = json.canonical(default_image().manifest()).decode()
    body: JsonObject = {
        "apiVersion": APPROVED_IMAGE.api_version, "kind": APPROVED_IMAGE.kind,
        "metadata": {"name": IMAGE, "namespace": NAMESPACE, "annotations": {MEASUREMENTS: manifest}},
        "spec": {"image": f"simulated.fastness.dev/machine@{sha256(manifest.encode())}"},
    }  # fmt: skip
    with suppress(AlreadyExists):
        await cluster.create(APPROVED_IMAGE.resource, body)
    try:
        yield
    finally:
        with suppress(ApiError):
            await cluster.delete(APPROVED_IMAGE.resource, IMAGE, NAMESPACE)


@asynccontextmanager
async def _ticket(cluster: Cluster, pool: str) -> AsyncIterator[SecretText]:
    made = mint(ENTROPY)
    name = f"selftest-{ticket_hash(made)[-10:]}"
    await cluster.create(JOIN_TICKET.resource, join_ticket(name, made, pool, CLOCK.now() + TICKET_LIFETIME, 1))
    try:
        yield made
    finally:
        with suppress(ApiError):
            await cluster.delete(JOIN_TICKET.resource, name)


@asynccontextmanager
async def _forgotten(cluster: Cluster, enrolled: Enrolled) -> AsyncIterator[None]:
    """Take the Machine away at the end."""
    try:
        yield
    finally:
        with suppress(ApiError):
            await cluster.delete(MACHINE.resource, enrolled.name, NAMESPACE)
