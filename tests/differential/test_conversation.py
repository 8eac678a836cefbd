"""The embedded API and a real kube-apiserver give the same answers to the same requests."""

from __future__ import annotations

import asyncio
import ssl
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.contract.worlds import install_definitions
from tests.differential.allowed import ALLOWED, MOST
from tests.differential.compare import Difference, differences, side_by_side, stale, unexplained
from tests.differential.conversation import Conversation
from tests.differential.normal import normal
from tests.differential.peer import embedded_peer
from tests.differential.script import FAMILIES
from tests.differential.step import Step
from tests.realkube import RealKube

LEAST_REQUESTS = 150
AGENT = {"User-Agent": "tests/1"}


@dataclass(frozen=True)
class Compared:
    """Both conversations, ready to be compared step by step."""

    embedded: Conversation
    real: Conversation
    now: datetime

    def pair(self, step: Step) -> tuple[dict[str, Any], dict[str, Any]]:
        """The two normal answers to a step."""
        left, right = (
            normal(side.answers[step.id].facts(), side.captured, self.now) for side in (self.embedded, self.real)
        )
        return left, right

    def differences_at(self, step: Step) -> list[Difference]:
        """Every difference in the answers to a step."""
        return list(differences(step.id, *self.pair(step)))


def client(url: str, ca: Path, certificate: tuple[Path, Path] | None = None, token: str = "") -> httpx.AsyncClient:
    """A client with one credential, or with none."""
    context = ssl.create_default_context(cafile=str(ca))
    if certificate:
        context.load_cert_chain(*map(str, certificate))
    headers = {**AGENT, **({"Authorization": f"Bearer {token}"} if token else {})}
    return httpx.AsyncClient(base_url=url, verify=context, headers=headers, timeout=60, trust_env=False)


async def forget_defaults(real: httpx.AsyncClient) -> None:
    """Take away classes that other tests left on the shared server: a default one changes what later objects get."""
    for path in ("/apis/storage.k8s.io/v1/storageclasses", "/apis/networking.k8s.io/v1/ingressclasses"):
        (await real.delete(path)).raise_for_status()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def compared(real_kube: RealKube, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Compared]:
    """The whole script, spoken with both servers at the same time."""
    install_definitions(real_kube)
    run = f"d{uuid.uuid4().hex[:6]}"
    state = tmp_path_factory.mktemp("differential") / "state"
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(embedded_peer(state))
        ca, admin = state / "pki" / "ca.crt", state / "pki" / "admin.pem"
        clients = [
            client(server.url, ca, (admin, admin)),
            client(server.url, ca),
            client(real_kube.url, real_kube.ca, token=real_kube.users["admin"].token),
            client(real_kube.url, real_kube.ca),
        ]
        for each in clients:
            await stack.enter_async_context(each)
        await forget_defaults(clients[2])
        embedded, real = Conversation(clients[0], clients[1], run), Conversation(clients[2], clients[3], run)
        steps = [step for family in FAMILIES.values() for step in family]
        await asyncio.gather(embedded.speak(steps), real.speak(steps))
        yield Compared(embedded, real, datetime.now(UTC))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("family", FAMILIES)
async def test_answers_are_those_of_a_real_api_server(family: str, compared: Compared) -> None:
    problems = []
    for step in FAMILIES[family]:
        left = unexplained(compared.differences_at(step), ALLOWED)
        if left:
            problems.append(f"{left[0]}\n{step.method} {step.path}\n{side_by_side(*compared.pair(step))}")
    assert not problems, f"{len(problems)} steps differ\n\n" + "\n\n".join(problems)


@pytest.mark.asyncio(loop_scope="module")
async def test_every_allowed_difference_still_occurs(compared: Compared) -> None:
    occurring = [each for family in FAMILIES.values() for step in family for each in compared.differences_at(step)]
    assert not stale(occurring, ALLOWED)


def test_the_list_of_allowed_differences_is_short_and_explained() -> None:
    assert len(ALLOWED) <= MOST
    assert all(len(entry.reason.split()) > 4 for entry in ALLOWED)


def test_the_script_is_long_and_its_steps_have_names_of_their_own() -> None:
    steps = [step for family in FAMILIES.values() for step in family]
    assert len(steps) >= LEAST_REQUESTS
    assert len({step.id for step in steps}) == len(steps)
    assert all(step.id.startswith(f"{family}.") for family, listed in FAMILIES.items() for step in listed)
