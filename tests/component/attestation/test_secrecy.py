"""Canaries over the whole walk: what is secret is in no log line, no refusal, no metric, no object and no entry of the record.

Everything that the doors of attestation do is done here with values that would be recognised: enrolment, good and bad evidence,
resources that are there, missing and somebody else's, mangled requests, an administrator, the record, explanations.
"""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import pytest

from fastness.agent.boot.enrol import EnrolmentFailed
from fastness.agent.boot.prove import PREFIX, BrokerRefused
from fastness.crypto.secret import SecretText
from fastness.formats import json
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.evidence import EVIDENCE_BLOB, SPENT_CHALLENGE
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.observe import logs, metrics
from fastness.sim.tee.images import changed, default_image
from tests.attesting import AttestingWorld, attesting_world
from tests.embedded.fixtures import Embedded

CANARY = b"canary-of-a-disk-key-41c7"
READABLE: tuple[Resource, ...] = (
    AUDIT_BATCH.resource, EVIDENCE_BLOB.resource, SPENT_CHALLENGE.resource, JOIN_TICKET.resource, VERDICT.resource,
    MACHINE.resource, CONFIG_MAP.resource,
)  # fmt: skip


@contextmanager
def listening() -> Iterator[io.StringIO]:
    """All log lines, also those for whoever looks for defects."""
    root = logging.getLogger("fastness")
    before, level, propagate = root.handlers[:], root.level, root.propagate
    lines = io.StringIO()
    logs.configure(level="debug", stream=lines, as_json=True)
    try:
        yield lines
    finally:
        root.handlers[:], root.propagate = before, propagate
        root.setLevel(level)


async def refusals(world: AttestingWorld, paths: list[str], cookie: str) -> list[str]:
    """What strangers and the holder of a session are told when they ask for what they may not have."""
    answers = []
    for port in (world.doors.broker.port, world.doors.enrolment.port):
        async with httpx.AsyncClient(base_url=f"https://127.0.0.1:{port}", verify=world.trust, timeout=10) as http:
            for path in paths:
                for headers in ({}, {"cookie": cookie}, {"authorization": f"Bearer {CANARY.decode()}"}):
                    for method in ("GET", "POST", "DELETE"):
                        answer = await http.request(method, path, headers=headers, content=CANARY)
                        answers.append(f"{answer.headers} {answer.text}")
    return answers


async def stored(world: AttestingWorld) -> str:
    """Every object that is readable without being a secret."""
    texts = [json.encode(obj).decode() for kind in READABLE for obj in (await world.cluster.list(kind)).items]
    return "\n".join(texts)


async def keys(world: AttestingWorld) -> list[str]:
    """What the Secrets of the cluster hold: private keys and MAC keys of doors."""
    held = [secret.get("data") or {} for secret in (await world.cluster.list(SECRETS)).items]
    values = [value for data in held for name, value in data.items() if "public" not in name and "jwks" not in name]
    return [value for value in values if len(value) >= 24 and not _certificate(value)]


def _certificate(value: str) -> bool:
    return base64.b64decode(value).startswith(b"-----BEGIN CERTIFICATE")


async def test_no_secret_shows_on_the_whole_walk(embedded_server: Embedded, capfd: pytest.CaptureFixture[str]) -> None:
    with listening() as lines:
        async with attesting_world(embedded_server.cluster) as world:
            secrets, answers = await walked(world)
            answers.append(await stored(world))
            secrets += await keys(world)
    printed = "".join(capfd.readouterr())
    everywhere = {
        "a log line": lines.getvalue(), "an answer or an object": "\n".join(answers), "the output": printed,
        "a metric": metrics.exposition().decode(),
    }  # fmt: skip
    assert len(secrets) > 8
    assert "release" in everywhere["an answer or an object"], "the record was looked at"
    for place, text in everywhere.items():
        for secret in secrets:
            assert secret not in text, f"{place} holds {secret[:12]}…"


async def walked(world: AttestingWorld) -> tuple[list[str], list[str]]:
    """Do everything; returns what nobody may see, and what was answered to those who were refused."""
    secrets, answers = [CANARY.decode(), base64.b64encode(CANARY).decode(), CANARY.hex()], []
    await world.approve("tpm")
    ticket = await world.ticket()
    secrets.append(ticket.reveal())
    good, bad = world.machine("tpm"), world.machine("tpm", changed(default_image(), command_line="init=/bin/sh"))
    for machine in (good, bad):
        await world.enrol(machine, ticket)
    with suppress(EnrolmentFailed):
        await world.enrol(world.machine("tpm"), SecretText(f"{ticket.reveal()}x"))
    uid = (await world.machine_object(good))["metadata"]["uid"]
    own = f"machine/{uid}/disk"
    await world.keep(own, CANARY)
    async with world.broker(good) as broker:
        secrets.append((await broker.attest()).reveal())
        assert (await broker.resource(own)).reveal() == CANARY
        cookie = broker._session
        secrets += [cookie.partition("=")[2], broker.key.to_pem().reveal().decode().splitlines()[1]]
        paths = [
            f"{PREFIX}/resource/{path}"
            for path in (own, f"machine/{uid}/none", "machine/other/disk", "../../etc/passwd")
        ]
        answers += await refusals(world, [*paths, f"{PREFIX}/attest", f"{PREFIX}/auth", "/ignition-register"], cookie)
    async with world.broker(bad) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
        answers.append(f"{refused.value} {refused.value.reason}")
    return secrets, answers
