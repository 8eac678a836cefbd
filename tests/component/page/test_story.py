"""A tampered machine, from its boot to the page: the real doors refuse it, and the page says what, why and what to do."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.verdict.dispute import short
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.page.pages.parts import tone_of
from fastness.page.view_scope import MACHINES
from fastness.page.views.machine import moments_of
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from tests.attesting import AttestingWorld, attesting_world, until
from tests.component.page.scan import harmless
from tests.component.page.served_page import ServedPage


async def test_a_changed_command_line_is_refused_and_the_page_says_why(web: ServedPage) -> None:
    async with attesting_world(web.cluster) as world:
        await world.approve("tpm")
        tampered = await world.enrolled("tpm", changed(default_image(), command_line="console=ttyS0 init=/bin/sh"))
        async with world.broker(tampered) as broker:
            with pytest.raises(BrokerRefused):
                await broker.attest()
        name = (await world.machine_object(tampered))["metadata"]["name"]

        async def judged() -> bool:
            machine = web.informers.of(MACHINES).get(NAMESPACE, name)
            return bool(machine and (machine.get("status") or {}).get("lastVerdict"))

        await until(judged)
        admin = await web.administrator()
        html = (await admin.get(f"/machines/{name}")).text
        harmless(html)
        first = html[html.index("The first difference") :]
        assert "PCR 4 (boot loader and kernel)" in first[:200]
        assert "The first event that no approved image has is number" in first
        assert first.index("Expected") < first.index("Seen")
        assert "fastness image approve" in html
        assert "verdict Refused" in html
        inbox = (await admin.get("/?state=inbox")).text
        assert name in inbox
        assert "Needs a decision (1)" in inbox


async def test_a_good_machine_has_no_difference_and_whoever_speaks_in_its_name_is_shown_beside_it(
    web: ServedPage,
) -> None:
    async with attesting_world(web.cluster) as world:
        await world.approve("tdx")
        machine = await world.enrolled("tdx")
        async with world.broker(machine) as broker:
            await broker.attest()
        name = (await world.machine_object(machine))["metadata"]["name"]
        admin = await web.administrator()
        html = ""

        async def attested() -> bool:
            nonlocal html
            html = (await admin.get(f"/machines/{name}")).text
            return "is attested (tdx)" in html

        await until(attested)
        assert "The first difference" not in html
        assert "verdict Affirmed" in html
        assert fact(html, "Note") == "identity on an open disk"
        assert "Disputed" not in html
        await _copied(world, machine)

        async def disputed() -> bool:
            nonlocal html
            html = (await admin.get(f"/machines/{name}")).text
            return fact(html, "Disputed").count("evidence in its name") == 2

        await until(disputed)
        harmless(html)
        chip, _ = (await world.machine_object(machine))["status"]["disputes"]
        disputes = fact(html, "Disputed")
        assert disputes.startswith(f"evidence in its name from {short(chip['shows'])} since ")
        assert (
            f"not from {short(chip['against'])}; evidence in its name of a boot that is over (TDX launch " in disputes
        )
        assert "is attested (tdx)" in html


async def _copied(world: AttestingWorld, machine: SimAttester) -> None:
    """Its guest key speaks from another chip, and from a second domain on its own; then the machine itself again."""
    domain: Any = machine.machine
    elsewhere, beside = world.machine("tdx"), SimAttester(domain.chip.boot(guest=domain.guest))
    elsewhere.machine.__dict__["identity_key"] = domain.identity_key
    for speaker, answer in ((elsewhere, "approval-pending"), (beside, ""), (machine, "boot-is-over")):
        async with world.broker(speaker) as broker:
            try:
                await broker.attest()
                outcome = ""
            except BrokerRefused as error:
                outcome = error.reason
        assert outcome == answer


def fact(html: str, name: str) -> str:
    """What the page says beside a name; empty where it says nothing."""
    match = re.search(rf"<dt>{name}</dt>\s*<dd>(.*?)</dd>", html, re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", "", match[1])) if match else ""


def test_a_refusal_on_the_record_is_bad_news_and_says_why() -> None:
    entry = {"time": "2026-01-01T00:00:00Z", "what": "refusal", "index": 3, "detail": {"code": "nonce-differs"}}
    (moment,) = moments_of({}, [], [entry])
    assert (moment.what, moment.detail, tone_of(moment.tone)) == ("record: refusal", "nonce-differs", "bad")
    (moment,) = moments_of({}, [], [{**entry, "what": "release", "resource": "pool/worker/config"}])
    assert (moment.detail, tone_of(moment.tone)) == ("pool/worker/config", "good")
