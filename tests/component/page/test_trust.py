"""Pools and trust in a cluster where everything happens at once: plans, waves, drift, blast radius, proofs."""

from __future__ import annotations

import re

from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.page.pages.parts import command, difference, lasting, side_by_side
from tests.component.page.scan import shows
from tests.component.page.served_page import ServedPage
from tests.component.page.showcase import made, stage
from tests.lowering import lowered


async def test_a_pool_shows_its_waves_and_the_plan_of_its_change(web: ServedPage) -> None:
    await stage(web)
    html = await shows(await web.administrator(), "/pools", "The change under way")
    assert "-server ntp.example" in html
    assert "+server ntp2.example iburst" in html
    assert "Each machine: <strong>reboot</strong>, after a drain" in html
    assert " from 50-time" in html
    assert 'aria-label="wave 1: 3 of 3 machines"' in html
    assert 'aria-label="wave 2: 0 of 4 machines"' in html
    assert "10 min" in html
    order = re.findall(r'data-label="Order">([^<]+)<', html)
    assert order == ["wave 2, turn 1"] * 2 + ["wave 2, turn 2"] * 2 + ["wave 3, turn 3"] * 2
    assert "worker-77e2a4d1905bb3f8c641 does not have what it should have" in html


async def test_drift_names_the_file_the_difference_and_who_set_it(web: ServedPage) -> None:
    await stage(web)
    html = await shows(await web.administrator(), "/machines/machine-77e2a4d1905bb3f8c641", "Drift: what is not")
    row = re.search(
        r'data-label="Part"><code>/etc/chrony.conf</code></td><td data-label="Difference">([^<]+)</td>', html
    )
    assert row is not None
    assert "server evil.example" in row[1]
    assert 'data-label="Set by">50-time' in html
    assert "fastness.dev/drift-policy=repair" in html


async def test_a_distrust_shows_whom_it_hits_and_another_one_whom_it_would(web: ServedPage) -> None:
    await stage(web)
    admin = await web.administrator()
    html = await shows(admin, "/trust", "microcode older than the advisory")
    assert "Hit: 3 machines" in html
    assert "were distrusted" not in html
    preview = await shows(admin, "/trust?distrust=chipGeneration:Genoa", "If chipGeneration Genoa were distrusted")
    assert "fastness distrust generation Genoa" in preview
    assert "were distrusted" not in (await admin.get("/trust?distrust=machine:x")).text  # only what machines proved


async def test_a_value_says_which_file_of_the_image_gave_it(web: ServedPage) -> None:
    note = "computed from /boot/EFI/Linux/os.efi"
    value = {
        "name": "tpm_pcr11",
        "register": "pcr11",
        "algorithm": "sha256",
        "value": "ab" * 32,
        "state": "Current",
        "note": note,
    }
    image = f"registry.example/os@sha256:{'5' * 64}"
    await made(web, REFERENCE_VALUE_SET, "image-5", {"source": "image", "image": image, "values": [value]})
    html = await shows(await web.administrator(), "/trust", "tpm_pcr11")
    assert f'data-label="What it is">{note}<' in html


async def test_policies_show_which_cases_fail(web: ServedPage) -> None:
    await stage(web)
    html = await shows(await web.administrator(), "/trust", "no-debug")
    cases = dict(re.findall(r'data-label="Case">([^<]+)<.*?data-label="Result"><span class="badge \w+">(\w+)<', html))
    assert cases == {"an approved image": "passes", "debug mode is on": "fails"}


async def test_an_entry_comes_with_a_proof_that_holds(web: ServedPage) -> None:
    await stage(web)
    admin = await web.administrator()
    html = await shows(admin, "/record/7", "Entry 7")
    assert "6 hashes lead from the entry to the root" in html
    assert ">verified<" in html
    assert "fastness audit prove 7" in html
    for number in ("60", "-1", "x", "9" * 20):
        assert (await admin.get(f"/record/{number}")).status_code == 404


async def test_a_record_that_was_changed_does_not_hold(web: ServedPage) -> None:
    await stage(web)
    assert web.tiles is not None
    path = "tile/entries/000.p/60"
    data = await web.tiles.read(path)
    assert data is not None
    await web.tiles.write(path, data.replace(b"approve", b"APPROVE"))
    html = await shows(await web.administrator(), "/record/5", "Entry 5")
    assert ">not verified<" in html
    assert "Compare it with a backup" in html


async def test_the_record_can_be_read_back_to_its_beginning(web: ServedPage) -> None:
    await stage(web)
    admin = await web.administrator()
    html, pages = await shows(admin, "/trust", "Older entries"), 0
    while (older := re.search(r'href="(/trust\?before=\d+)#record"', html)) is not None and pages < 10:
        html, pages = (await admin.get(older[1])).text, pages + 1
    assert pages == 2
    assert 'href="/record/0"' in html


async def test_somebody_who_may_not_see_checkpoints_sees_no_entry(web: ServedPage) -> None:
    await stage(web)
    viewer = await web.viewer()
    assert (await viewer.get("/record/7")).status_code == 403


def test_a_difference_is_marked_from_the_place_where_it_begins() -> None:
    html = side_by_side("abcd or abxx", "abce")
    assert '<span>abc<mark class="wanted">d</mark>' in html
    assert '<span>ab<mark class="wanted">xx</mark>' in html
    assert '<span>abc<mark class="found">e</mark>' in html
    assert "nothing" in side_by_side("", "")


def test_lines_of_a_difference_have_their_sign() -> None:
    html = difference("--- a\n+++ b\n@@ 1 @@\n same\n-old\n+new")
    assert html.count('class="place"') == 3
    assert '<span class="less">-old' in html
    assert '<span class="more">+new' in html


def test_a_command_can_be_copied_and_a_sentence_cannot() -> None:
    assert 'data-copy="fastness machine release x"' in str(command("fastness machine release x    # to trust it again"))
    assert command("Look at it.") == "Look at it."


def test_spans_are_said_as_people_say_them() -> None:
    assert [lasting(seconds) for seconds in (90, 600, 3600, 172800, 0.5)] == [
        "90 s",
        "10 min",
        "1 h",
        "2 days",
        "0.5 s",
    ]


async def test_a_root_that_somebody_added_is_shown_with_the_reason(web: ServedPage) -> None:
    admin = await web.administrator()
    html = (await admin.get("/trust")).text
    assert "only the roots of the vendors count" in html
    assert "the root of the simulated vendor counts" in html
    root = {"sha256": "cd" * 32, "for": "tpm", "reason": "the TPMs of our own lab"}
    await lowered(web.cluster, {"attestation": {"extraRoots": [root]}})
    html = await shows(admin, "/trust", "the TPMs of our own lab")
    assert "only the roots of the vendors count" not in html
