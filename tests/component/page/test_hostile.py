"""Nobody's text becomes more than text: names, reasons, file contents, event logs, the record, addresses."""

from __future__ import annotations

import html
from urllib.parse import quote

import pytest

from fastness.page.markup import text
from tests.component.page import hostile
from tests.component.page.scan import harmless, shows
from tests.component.page.served_page import ServedPage


async def test_every_field_that_a_stranger_controls_is_text_on_every_page(web: ServedPage) -> None:
    await hostile.stage(web)
    admin = await web.administrator()
    await shows(admin, f"/machines/{hostile.MACHINE}", "check-hint")
    await shows(admin, "/trust", "distrust-reason")
    await shows(admin, "/pools", "file-text")
    for path, fields in hostile.FIELDS.items():
        answer = await admin.get(path)
        assert answer.status_code == 200, path
        harmless(answer.text)
        visible = html.unescape(answer.text)
        unseen = [field for field in fields if field not in visible]
        assert unseen == [], path  # a field that is not shown would be a test of nothing
        for field in fields:
            hidden = [char for char in hostile.evil(field) if char in "\u202e\u2066\x1b"]
            assert not [char for char in hidden if char in answer.text], (path, field)


@pytest.mark.parametrize("shape", hostile.SHAPES)
async def test_an_address_is_text(web: ServedPage, shape: str) -> None:
    markup = shape.format("x")
    admin = await web.administrator()
    for path in (
        "/{}",
        "/machines/{}",
        "/record/{}",
        "/?q={}&pool={}&tee={}",
        "/login?then={}&key={}",
        "/trust?distrust={}&before={}",
    ):
        harmless((await admin.get(path.format(*[quote(markup, safe="/:<>\"'")] * 3))).text)


@pytest.mark.parametrize("shape", hostile.SHAPES)
async def test_what_a_form_says_comes_back_as_text(web: ServedPage, shape: str) -> None:
    markup = shape.format("x")
    admin = await web.administrator()
    token = await admin.token()
    for path, fields in (
        ("/machines/none/decision", {"decision": "quarantine", "reason": markup}),
        ("/simulator", {"action": "do", "kind": markup, "machine": markup}),
        ("/simulator", {"action": "undo", "fault": markup}),
        ("/simulator", {"action": markup}),
        ("/login", {"bearer": markup, "then": markup}),
    ):
        answer = await admin.post(path, {"token": token, **fields})
        assert answer.status_code in (400, 403, 404), path
        harmless(answer.text)


@pytest.mark.parametrize("shape", hostile.SHAPES)
def test_text_has_no_way_out_of_itself(shape: str) -> None:
    out = text(shape.format("x"))
    assert not set("<>\"'\u202e\u2066\x1b") & set(str(out))
