"""The ASGI application of the page.

A request goes through the route (404), the session (to the login form), the authenticator and authorizer of the API, then a view.
Rules:

* Every answer carries a content security policy under which a browser runs nothing but our one script, and may not be framed.
* A POST without our token, or from another origin, is refused before anything is looked at.
* What a handler raises becomes a page with a hint; an unexpected exception a page with the correlation id and nothing else, and
  the story is in the log. This is an HTTP edge: the one place with a broad `except`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from fastness.crypto.secret import SecretText
from fastness.http import Answer, Request, Stream
from fastness.http.answers import Headers
from fastness.http.request import ClientGone
from fastness.http.streaming import until_gone
from fastness.kube.access import User
from fastness.kube.errors import ApiError, BadRequest, Forbidden, NotFound, Unavailable
from fastness.observe import context, logs, metrics
from fastness.page import routes
from fastness.page.admission import Admitted, Doorkeeper
from fastness.page.assets import Assets
from fastness.page.controls import Sayings, operate
from fastness.page.decisions import carry_out
from fastness.page.fleet import Rows
from fastness.page.live_updates import News
from fastness.page.pages.layout import Frame
from fastness.page.pages.login import login_page, problem_page
from fastness.page.pages.parts import machine_path
from fastness.page.pages.simulator import PATH as SIMULATOR
from fastness.page.record import Reader
from fastness.page.sessions import Credential, Session, Sessions
from fastness.page.simulator import Simulator, aimed_at
from fastness.page.view_scope import Sight, Stock
from fastness.page.views import VIEWS
from fastness.page.views.view_request import Shown
from fastness.runtime.clock import Clock, Entropy

HTML: Final = b"text/html; charset=utf-8"
MAX_FORM: Final = 32 * 1024
MAX_FIELDS: Final = 16
MAX_IN_FLIGHT: Final = 100
MAX_NAME: Final = 253
SAFE: Final[Headers] = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
        b"base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NEVER_KEPT: Final[Headers] = ((b"cache-control", b"no-store"),)
ABOUT_MACHINES: Final = frozenset({"machine", "decision"})
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Deed = Callable[[Request, User, "Act", int], None]
_log = logs.logger("page")


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody did on the page: to a Machine, or through the simulator to a virtual one."""

    verb: str
    name: str
    simulator: bool = False


@dataclass(frozen=True, slots=True)
class Behind:
    """What the application stands on; `deed` writes a line about everything that somebody does, also when it is refused."""

    door: Doorkeeper
    stock: Stock
    sessions: Sessions
    news: News
    reader: Reader
    deed: Deed
    clock: Clock
    entropy: Entropy
    assets: Assets = field(default_factory=Assets)
    simulator: Simulator | None = None


@dataclass(frozen=True, slots=True)
class _Visit:
    """A request of somebody who is logged in."""

    request: Request
    name: str
    session: Session
    admitted: Admitted
    sight: Sight
    frame: Frame


class PageApp:
    """The page over HTTP."""

    def __init__(self, behind: Behind) -> None:
        self._behind = behind
        self._rows = Rows()
        self._sayings = Sayings(behind.clock)
        self._in_flight = 0

    def prepare(self) -> None:
        """Make the row of every machine before somebody looks: of thousands that is the longest part of a first answer."""
        now = self._behind.clock.now()
        self._rows.of(*self._behind.stock.fleet(), self._behind.stock.rules(now), now)

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        correlation = context.begin(self._behind.entropy.uid())
        try:
            answer = await self._guarded(request, correlation)
            await _deliver(request, answer, send)
        except ClientGone:
            return

    async def _guarded(self, request: Request, correlation: str) -> Answer | Stream:
        if self._in_flight >= MAX_IN_FLIGHT:
            return self._problem(Unavailable("too many people look at this page at once"))
        self._in_flight += 1
        try:
            return await self._respond(request)
        except ApiError as error:
            return self._problem(error)
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001  # the HTTP edge: nothing may escape without an answer and a log line
            _log.exception("request.failed", method=request.method, path=request.path)
            metrics.DEFECTS.inc("page")
            return self._problem(ApiError(f"something unexpected happened, see the log under {correlation}"))
        finally:
            self._in_flight -= 1

    async def _respond(self, request: Request) -> Answer | Stream:
        found = routes.find(request.method, request.path)
        if found is None:
            raise NotFound("there is no such page")
        route, name = found
        if route.name == "asset":
            return self._asset(request.path)
        if route.name == "login-form":
            return self._login_form(request)
        form = await _form(request) if route.method == "POST" else {}
        if route.name == "login":
            return await self._log_in(request, form)
        visit = await self._visit(request, route, name)
        if visit is None:
            return self._to_login(request)
        if route.method == "POST" and not self._behind.sessions.is_ours(visit.session, form.get("token", "")):
            raise Forbidden("this form is not from this page, or from an older login")
        if route.name == "events":
            return self._events(visit)
        if route.name == "logout":
            return self._log_out(visit)
        if route.name == "decision":
            return await self._decide(visit, form)
        if route.name == "simulate":
            return await self._simulate(visit, form)
        return await self._view(visit, route.name)

    # -- logging in and out

    async def _visit(self, request: Request, route: routes.Route, name: str) -> _Visit | None:
        """The visit of a session whose credential still counts; None without one."""
        session = self._behind.sessions.find(_cookie(request, self._behind.sessions.cookie))
        if session is None:
            return None
        admitted = await self._behind.door.admit(session.credential, name if route.name in ABOUT_MACHINES else "")
        if admitted is None:
            return None
        sight = Sight(admitted.user, admitted.rights, self._behind.stock)
        return _Visit(request, name, session, admitted, sight, self._frame(admitted.user, session))

    def _login_form(self, request: Request, problem: str = "", code: int = 200, then: str = "") -> Answer:
        sessions, key = self._behind.sessions, request.query.get("key", "") if code == 200 else ""
        if key and not sessions.link_counts(key):
            key, problem = "", "This link was used already, or is older than five minutes. Log in with a token instead."
        cookie, token = sessions.before_login()
        then = routes.after_login(then or request.query.get("then", "/"))
        body = login_page(self._frame(), token, then, key, problem)
        return Answer(code, body, HTML, (_set_cookie(sessions.login_cookie, cookie, 1800), *NEVER_KEPT))

    async def _log_in(self, request: Request, form: Mapping[str, str]) -> Answer:
        sessions = self._behind.sessions
        if not sessions.is_our_login(_cookie(request, sessions.login_cookie), form.get("form", "")):
            return self._login_form(request, "The form was too old. Please try again.", 403, form.get("then", ""))
        credential = _credential(sessions, form)
        if credential is None or await self._behind.door.admit(credential) is None:
            return self._login_form(
                request, "That does not log in: the API does not know it.", 401, form.get("then", "")
            )
        before = sessions.find(_cookie(request, sessions.cookie))
        if before is not None:
            sessions.end(before)
        _, cookie = sessions.begin(credential)
        location = (b"location", routes.after_login(form.get("then", "/")).encode())
        cookies = (_set_cookie(sessions.cookie, cookie, 8 * 3600), _set_cookie(sessions.login_cookie, "", 0))
        return Answer(303, b"", HTML, (location, *cookies, *NEVER_KEPT))

    def _log_out(self, visit: _Visit) -> Answer:
        self._behind.sessions.end(visit.session)
        cookie = _set_cookie(self._behind.sessions.cookie, "", 0)
        return Answer(303, b"", HTML, ((b"location", b"/login"), cookie, *NEVER_KEPT))

    def _to_login(self, request: Request) -> Answer:
        """Back to the form; a stream of events ends instead, because no person would see the form."""
        if request.path == "/events":
            return Answer(401, b"", b"text/plain", NEVER_KEPT)
        query = request.raw_query.decode("ascii", "replace")
        wanted = request.path + (f"?{query}" if query else "") if request.method != "POST" else "/"
        location = f"/login?then={quote(routes.after_login(wanted), safe='')}"
        return Answer(303, b"", HTML, ((b"location", location.encode()), *NEVER_KEPT))

    # -- views and decisions

    async def _view(self, visit: _Visit, name: str) -> Answer:
        behind = self._behind
        shown = Shown(
            visit.sight, visit.frame, visit.name, visit.request.query, behind.reader, self._rows, visit.admitted.acting,
            behind.simulator, self._sayings.of(visit.session.id),
        )  # fmt: skip
        try:
            return Answer(200, await VIEWS[name](shown), HTML, NEVER_KEPT)
        except ApiError as error:
            return self._problem(error, visit.frame)

    async def _decide(self, visit: _Visit, form: Mapping[str, str]) -> Answer:
        code = 500
        try:
            await carry_out(visit.admitted.acting, visit.sight, visit.name, form)
            code = 200
        except ApiError as error:
            code = error.code
            return self._problem(error, visit.frame)
        finally:
            self._behind.deed(visit.request, visit.sight.user, Act("patch", visit.name), code)
        back = "/" if form.get("then") == "fleet" else machine_path(visit.name)
        return Answer(303, b"", HTML, ((b"location", back.encode()), *NEVER_KEPT))

    async def _simulate(self, visit: _Visit, form: Mapping[str, str]) -> Answer:
        code = 500
        try:
            said = await operate(self._behind.simulator, visit.sight, form)
            code = 200
        except ApiError as error:
            code = error.code
            return self._problem(error, visit.frame)
        finally:
            act = Act(form.get("action", "")[:MAX_NAME], aimed_at(form)[:MAX_NAME], simulator=True)
            self._behind.deed(visit.request, visit.sight.user, act, code)
        self._sayings.keep(visit.session.id, said)
        self._behind.news.tell("simulator")
        return Answer(303, b"", HTML, ((b"location", SIMULATOR.encode()), *NEVER_KEPT))

    def _events(self, visit: _Visit) -> Answer | Stream:
        if self._behind.news.full:
            return Answer(503, b"", b"text/plain", ((b"retry-after", b"10"), *NEVER_KEPT))
        sessions, cookie = self._behind.sessions, _cookie(visit.request, self._behind.sessions.cookie)

        async def still() -> bool:
            session = sessions.find(cookie)
            return session is not None and await self._behind.door.admit(session.credential) is not None

        return Stream(200, self._behind.news.stream(still), b"text/event-stream", NEVER_KEPT)

    def _asset(self, path: str) -> Answer:
        asset = self._behind.assets.get(path)
        if asset is None:
            raise NotFound("there is no such file")
        kept = ((b"cache-control", b"public, max-age=31536000, immutable"),)
        return Answer(200, asset.content, asset.content_type, kept)

    def _problem(self, error: ApiError, frame: Frame | None = None) -> Answer:
        return Answer(
            error.code, problem_page(frame or self._frame(), error.code, error.message, error.hint), HTML, NEVER_KEPT
        )

    def _frame(self, user: User | None = None, session: Session | None = None) -> Frame:
        behind = self._behind
        return Frame(
            behind.clock.now(), user.name if user else "",
            behind.sessions.form_token(session) if session else "", behind.stock.simulated,
            behind.news.silent_since, behind.assets.stylesheet, behind.assets.script,
            behind.simulator is not None, behind.stock.alerts,
        )  # fmt: skip


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form from this page; raises Forbidden for another origin, BadRequest, TooLarge."""
    origin, host = request.header(b"origin"), request.header(b"host")
    if (origin and origin != f"https://{host}") or request.header(b"sec-fetch-site") in ("cross-site", "same-site"):
        raise Forbidden("a form of another site cannot act here")
    if request.header(b"content-type").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise BadRequest("a form is sent as application/x-www-form-urlencoded")
    body = await request.body(MAX_FORM)
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise BadRequest("the form cannot be read") from error
    return dict(pairs)


def _credential(sessions: Sessions, form: Mapping[str, str]) -> Credential | None:
    if form.get("key"):
        return sessions.redeem(form["key"])
    token = form.get("bearer", "").strip().removeprefix("Bearer ").strip()
    return Credential(token=SecretText(token)) if token and token.isascii() and token.isprintable() else None


def _cookie(request: Request, name: str) -> str:
    for header in request.headers(b"cookie"):
        try:
            found = SimpleCookie(header).get(name)
        except CookieError:
            continue
        if found is not None:
            return found.value
    return ""


def _set_cookie(name: str, value: str, seconds: int) -> tuple[bytes, bytes]:
    return b"set-cookie", f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite=Strict".encode()


async def _deliver(request: Request, answer: Answer | Stream, send: Send) -> None:
    headers = [(b"content-type", answer.content_type), *answer.headers, *SAFE]
    if isinstance(answer, Stream):
        await send({"type": "http.response.start", "status": answer.code, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await until_gone(request, answer.chunks, send)
        return
    headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.code, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else answer.body})
