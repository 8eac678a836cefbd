"""Machines with user-data in init-data: the verdict shows what they were told, and a document that was swapped is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.prove import BrokerRefused
from fastness.agent.boot.user_data import ask_of_host
from fastness.attestation.verdict.init_data import FIELDS, USER_DATA, digest_of
from fastness.cli.trust.attest import attest
from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.formats.initdata import InitData
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import default_image
from tests.attesting import ENTROPY, AttestingWorld, attesting_world
from tests.embedded.fixtures import Embedded
from tests.initdisks import disk, document, packed, user_data

TEES = [("snp", "sha256"), ("tdx", "sha384")]


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world:
        yield world


def started_with(world: AttestingWorld, tee: str, init_data: InitData) -> SimAttester:
    """A machine whose host gave this digest to the processor."""
    size, option = (32, "host_data") if tee == "snp" else (48, "mr_config_id")
    return SimAttester(world.vendor.chip(tee).boot(default_image(), **{option: digest_of(init_data)[:size]}))  # type: ignore[arg-type]


async def booted(world: AttestingWorld, machine: SimAttester, directory: Path, content: InitData) -> None:
    """The agent's way: read the disk, measure, enrol with the ticket of the document."""
    patience = RetryBudget(world.clock, ENTROPY, 0)
    ask = await ask_of_host([disk(directory, packed(content.text))], machine, "", patience)
    await world.enrol(machine, ask.ticket)


async def verdicts(world: AttestingWorld) -> list[JsonObject]:
    return list((await world.cluster.list(VERDICT.resource)).items)


@pytest.mark.parametrize(("tee", "algorithm"), TEES)
async def test_a_verdict_shows_the_user_data_that_the_processor_measured(
    here: AttestingWorld, embedded_server: Embedded, tmp_path: Path, tee: str, algorithm: str
) -> None:
    await here.approve(tee)
    ticket = (await here.ticket()).reveal()
    init_data = document(user_data(ticket=ticket), algorithm)
    machine = started_with(here, tee, init_data)
    await booted(here, machine, tmp_path, init_data)
    async with here.broker(machine) as broker:
        token = (await broker.attest()).reveal()
        claims = json.encode(broker._claims()).decode()
    (verdict,) = await verdicts(here)
    (check,) = [check for check in verdict["spec"]["checks"] if check["name"] == USER_DATA]
    words = f"pool worker, server https://a.example, ticket {sha256(ticket.encode())}"
    assert (check["result"], check["source"]) == ("Pass", FIELDS[tee])
    assert check["seen"] == f"{words}, init-data {algorithm}:{digest_of(init_data).hex()}"
    # The ticket is a secret: neither the verdict nor the token has it.
    assert ticket not in json.encode(verdict).decode() + claims + token
    name = machine.machine.thumbprint.removeprefix("sha256:")[:12]
    arguments = ["explain", name, "--kubeconfig", str(embedded_server.kubeconfig)]
    explained = await asyncio.to_thread(CliRunner().invoke, attest, arguments)
    assert f"{check['seen']} ({FIELDS[tee]})" in explained.stdout


@pytest.mark.parametrize(("tee", "algorithm"), TEES)
async def test_a_host_that_swaps_the_document_has_a_machine_that_gets_nothing(
    here: AttestingWorld, tmp_path: Path, tee: str, algorithm: str
) -> None:
    await here.approve(tee)
    measured = document(user_data(ticket=(await here.ticket()).reveal()), algorithm)
    swapped = document(user_data(ticket=(await here.ticket("infra")).reveal(), pool="infra"), algorithm)
    machine = started_with(here, tee, measured)
    await booted(here, machine, tmp_path, swapped)
    async with here.broker(machine) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
    assert (refused.value.status, refused.value.reason) == (403, "init-data-differs")
    (verdict,) = await verdicts(here)
    assert verdict["spec"]["result"] == "Refused"
    assert USER_DATA not in [check["name"] for check in verdict["spec"]["checks"]]


@pytest.mark.parametrize(("tee", "algorithm"), TEES)
async def test_a_digest_without_its_document_is_not_affirmed(
    here: AttestingWorld, tmp_path: Path, tee: str, algorithm: str
) -> None:
    """The host measured one thing and tells another where nobody measures it."""
    await here.approve(tee)
    machine = started_with(here, tee, document(user_data(), algorithm))
    await here.enrol(machine, await here.ticket())
    async with here.broker(machine) as broker:
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
    assert refused.value.reason == "policy-denied"
