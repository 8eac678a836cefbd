"""The simulator on the page: what it shows, what it hands on, and who may."""

from __future__ import annotations

import pytest

from fastness.page.acts import SHOWN_FOR
from fastness.page.simulator import VirtualRow
from tests.component.page.scan import harmless, shows
from tests.component.page.served_page import Browser, ServedPage, condition


async def act(browser: Browser, **fields: str) -> int:
    return (await browser.post("/simulator", {"token": await browser.token(), **fields})).status_code


@pytest.fixture
def rows(web: ServedPage) -> ServedPage:
    web.simulator.rows = [
        VirtualRow("worker-1", "node-machine-one", "tpm", True, True),
        VirtualRow("worker-2", "", "tdx", False, False),
    ]
    return web


async def test_everything_that_can_be_asked_is_handed_on_and_what_happened_is_told(rows: ServedPage) -> None:
    admin = await rows.administrator()
    for fields, outcome in (
        ({"action": "do", "kind": "loader", "machine": "worker-1"}, "loader done to worker-1"),
        ({"action": "do", "kind": "vendor"}, "vendor done to the cluster"),
        ({"action": "undo", "fault": "fault-1"}, "loader undone"),
        ({"action": "add", "count": "3", "tee": "snp"}, "3 machines start"),
        ({"action": "reboot", "machine": "worker-1"}, "worker-1 boots again"),
        ({"action": "remove", "machine": "worker-2"}, "worker-2 is gone"),
    ):
        assert await act(admin, **fields) == 303
        html = (await admin.get("/simulator")).text
        assert outcome in html
        harmless(html)
    assert rows.simulator.calls[0] == ("do", "loader", "worker-1")
    assert "Stop the vendor" in html


async def test_what_was_told_is_for_one_login_and_for_a_moment(rows: ServedPage) -> None:
    admin, other = await rows.administrator(), await rows.administrator()
    await act(admin, action="reboot", machine="worker-1")
    assert "boots again" in (await admin.get("/simulator")).text
    assert "boots again" not in (await other.get("/simulator")).text
    rows.clock.ahead += SHOWN_FOR
    assert "boots again" not in (await admin.get("/simulator")).text


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"action": "explode"}, 400),
        ({}, 400),
        ({"action": "do", "kind": "nothing"}, 400),
        ({"action": "do", "kind": "loader", "machine": "nobody"}, 404),
        ({"action": "undo", "fault": "nothing"}, 404),
        ({"action": "add", "count": "0"}, 400),
        ({"action": "add", "count": "51"}, 400),
        ({"action": "add", "count": "٣"}, 400),
        ({"action": "add", "count": "1", "tee": "sgx"}, 400),
        ({"action": "remove", "machine": ""}, 404),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_reason(
    rows: ServedPage, fields: dict[str, str], code: int
) -> None:
    assert await act(await rows.administrator(), **fields) == code
    assert rows.simulator.faults == []


async def test_a_viewer_sees_what_is_broken_and_no_way_to_break(rows: ServedPage) -> None:
    await rows.machine("machine-one", "Approved", conditions=[condition("Approved", "True")])
    await rows.simulator.do("loader", "worker-1")
    viewer = await rows.viewer()
    html = await shows(viewer, "/simulator", "/machines/machine-one")
    assert "Change the boot loader" in html
    assert 'action="/simulator"' not in html
    assert await act(viewer, action="reboot", machine="worker-1") == 403
    assert ("reboot", "worker-1") not in rows.simulator.calls


async def test_a_cluster_with_real_machines_has_no_simulator(real_web: ServedPage) -> None:
    admin = await real_web.administrator()
    assert 'href="/simulator"' not in (await admin.get("/")).text
    assert (await admin.get("/simulator")).status_code == 404
    assert await act(admin, action="add", count="1") == 404


async def test_everything_that_is_asked_leaves_a_line_also_when_it_is_refused(rows: ServedPage) -> None:
    admin = await rows.administrator()
    await act(admin, action="do", kind="loader", machine="worker-1")
    await act(admin, action="undo", fault="nothing")
    await act(admin, action="add", count="3")
    await act(admin, action="x" * 1000)
    viewer = await rows.viewer()
    await act(viewer, action="remove", machine="worker-2")
    assert rows.deeds == [
        ("fastness-admin", "do worker-1.loader (simulator)", 200),
        ("fastness-admin", "undo nothing (simulator)", 404),
        ("fastness-admin", "add 3 (simulator)", 200),
        ("fastness-admin", f"{'x' * 253}  (simulator)", 400),
        ("system:serviceaccount:default:viewer", "remove worker-2 (simulator)", 403),
    ]
