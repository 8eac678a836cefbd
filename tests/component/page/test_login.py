"""Logging in and out: links, tokens, fixation, expiry, forged forms, and who sees what."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from fastness.kube.port import PatchType
from fastness.page.sessions import LIFETIME, LINK_LIFETIME
from tests.component.page.served_page import ACCOUNTS, ROLES, Browser, ServedPage, fields_of


def cookies(answer: httpx.Response) -> list[str]:
    return answer.headers.get_list("set-cookie")


async def is_in(browser: Browser) -> bool:
    return (await browser.get("/")).status_code == 200


async def test_a_link_logs_in_once_and_looking_at_it_does_not_use_it_up(web: ServedPage) -> None:
    link = web.page.link()
    for _ in range(3):
        assert "It works once" in (await web.browser().get(link)).text
    browser = web.browser()
    answer = await browser.follow_link(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert await is_in(browser)
    late = await web.browser().get(link)
    assert "used already" in late.text
    assert "key" not in fields_of(late.text)


async def test_a_link_ends_after_five_minutes(web: ServedPage) -> None:
    link, browser = web.page.link(), web.browser()
    form = fields_of((await browser.get(link)).text)
    web.clock.ahead += LINK_LIFETIME
    assert "older than five minutes" in (await web.browser().get(link)).text
    assert (await browser.post("/login", form)).status_code == 401
    assert not await is_in(browser)


async def test_the_cookie_is_hard_to_take(web: ServedPage) -> None:
    answer = await web.browser().follow_link(web.page.link())
    session = next(header for header in cookies(answer) if header.startswith(f"{web.page.sessions.cookie}="))
    assert session.startswith("__Host-")
    for word in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"):
        assert word in session
    assert "Domain" not in session


async def test_a_token_logs_in_as_its_account(web: ServedPage) -> None:
    browser = web.browser()
    answer = await browser.log_in(await web.account("someone", "cluster-admin"), then="/pools")
    assert (answer.status_code, answer.headers["location"]) == (303, "/pools")
    page = await browser.get("/pools")
    assert page.status_code == 200
    assert "system:serviceaccount:default:someone" in page.text


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.", "ü", "a\r\nb: c"])
async def test_what_the_api_does_not_know_does_not_log_in(web: ServedPage, token: str) -> None:
    browser = web.browser()
    assert (await browser.log_in(token)).status_code == 401
    assert not await is_in(browser)


async def test_a_session_that_somebody_planted_is_not_used(web: ServedPage) -> None:
    attacker = await web.administrator()
    planted = attacker.http.cookies[web.page.sessions.cookie]
    victim = web.browser()
    victim.http.cookies.set(web.page.sessions.cookie, planted)
    answer = await victim.follow_link(web.page.link())
    assert answer.status_code == 303
    fresh = next(header for header in cookies(answer) if header.startswith(f"{web.page.sessions.cookie}="))
    assert planted not in fresh
    assert not await is_in(attacker)  # what was planted ended with the login


async def test_an_id_that_nobody_issued_does_not_become_a_session(web: ServedPage) -> None:
    browser = web.browser()
    browser.http.cookies.set(web.page.sessions.cookie, "chosen-by-the-attacker")
    assert not await is_in(browser)


async def test_a_login_ends_after_a_while_and_leads_back_to_the_form(web: ServedPage) -> None:
    browser = await web.administrator()
    web.clock.ahead += LIFETIME
    answer = await browser.get("/machines/x?page=2")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?then=%2Fmachines%2Fx%3Fpage%3D2")
    again = await browser.get(answer.headers["location"])
    assert fields_of(again.text)["then"] == "/machines/x?page=2"


async def test_a_credential_that_ends_takes_its_login_along(web: ServedPage) -> None:
    browser = web.browser()
    await browser.log_in(await web.account("leaver", "cluster-admin"))
    assert (await browser.get("/pools")).status_code == 200
    await web.cluster.delete(ACCOUNTS, "leaver", "default")
    assert (await browser.get("/pools")).status_code == 303


async def test_a_token_that_expires_takes_its_login_along(web: ServedPage) -> None:
    browser = web.browser()
    await browser.log_in(await web.account("brief", "cluster-admin"))
    assert (await browser.get("/pools")).status_code == 200
    web.clock.ahead += timedelta(minutes=61)  # the session has hours left, the token has none
    assert (await browser.get("/pools")).status_code == 303


async def test_logging_out_ends_the_session_for_everybody_who_has_the_cookie(web: ServedPage) -> None:
    browser = await web.administrator()
    value = browser.http.cookies[web.page.sessions.cookie]
    assert (await browser.post("/logout", {"token": await browser.token()})).status_code == 303
    thief = web.browser()
    thief.http.cookies.set(web.page.sessions.cookie, value)
    assert not await is_in(thief)


async def test_nobody_logs_somebody_else_in(web: ServedPage) -> None:
    attacker, victim = web.browser(), web.browser()
    form = fields_of((await attacker.get("/login")).text)
    token = await web.account("attacker", "view")
    answer = await victim.post("/login", {**form, "bearer": token})
    assert answer.status_code == 403
    await victim.get("/login")  # a cookie of its own does not help with the token of another
    assert (await victim.post("/login", {**form, "bearer": token})).status_code == 403
    assert not await is_in(victim)


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
)  # fmt: skip
async def test_a_form_of_another_site_is_refused_even_with_everything_right(
    web: ServedPage, headers: dict[str, str]
) -> None:
    browser = await web.administrator()
    answer = await browser.post("/logout", {"token": await browser.token()}, headers=headers)
    assert answer.status_code == 403
    assert await is_in(browser)


OPEN_TO_ALL = {"login-form", "login", "asset", "provider", "callback"}


async def test_every_path_of_the_table_but_the_login_and_files_needs_a_login(web: ServedPage) -> None:
    browser = web.browser()
    for route in web.page.routes:
        path = route.path.replace("<name>", "machine-one")
        answer = await (browser.post(path, {"token": "x"}) if "POST" in route.methods else browser.get(path))
        if route.name == "events":
            assert answer.status_code == 401
        elif route.name not in OPEN_TO_ALL:
            assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login"), route.name
    assert {route.name for route in web.page.routes} > OPEN_TO_ALL


@pytest.mark.parametrize("token", ["", "guessed", "of-another-session"])
async def test_every_form_needs_the_token_of_its_session(web: ServedPage, token: str) -> None:
    await web.machine()
    browser = await web.administrator()
    if token == "of-another-session":
        token = await (await web.administrator()).token()
    fields = {"token": token, "form": token, "decision": "approve", "bearer": "x"}
    forms = [route for route in web.page.routes if "POST" in route.methods]
    for route in forms:
        path = route.path.replace("<name>", "machine-one")
        assert (await browser.post(path, fields)).status_code == 403, route.name
        assert await is_in(browser)
    assert {route.name for route in forms} == {"decision", "simulate", "logout", "login"}
    assert web.deeds == []


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/nothing", 404), ("GET", "/machines/", 404), ("GET", "/machines/a%2Fb", 404),
     ("GET", "/machines/" + "a" * 254, 404), ("GET", "/assets/..%2Fapp.py", 404), ("GET", "/assets/page.css", 404),
     ("PUT", "/", 405), ("POST", "/", 405), ("DELETE", "/machines/x", 405), ("GET", "/machines/x/decision", 405)],
)  # fmt: skip
async def test_nothing_else_is_there_and_a_page_says_so(web: ServedPage, method: str, path: str, code: int) -> None:
    browser = await web.administrator()
    answer = await browser.http.request(method, path)
    assert answer.status_code == code
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "Back to the fleet" in answer.text


async def test_a_form_in_json_or_too_large_is_refused(web: ServedPage) -> None:
    browser = await web.administrator()
    json = {"content-type": "application/json"}
    assert (await browser.http.post("/logout", content=b"{}", headers=json)).status_code == 415
    assert (await browser.post("/logout", {"token": "x" * 40000})).status_code == 413
    assert (await browser.post("/logout", {f"f{number}": "x" for number in range(40)})).status_code == 400


async def test_a_name_in_a_role_that_changes_counts_at_once(web: ServedPage) -> None:
    viewer = await web.viewer()
    assert (await viewer.get("/")).status_code == 200
    await web.cluster.patch(ROLES, "machine-viewer", {"rules": []}, PatchType.MERGE)
    assert (await viewer.get("/")).status_code == 403
