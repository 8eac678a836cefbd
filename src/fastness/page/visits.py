"""Who comes to the page: the session of a request, forms that are ours, logging in and out.

* A request is a visit when its cookie names a session whose credential still counts; the API is asked each time, so whoever loses
  their rights loses them here at once. Without one a browser is led to the form.
* A POST from another origin is refused before anything is looked at, and one without the token of its session after its body was
  read: SameSite alone does not help against a neighbour on the same site.
* A login begins a new session and ends the one whose cookie came along: a session that an attacker planted is never taken over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, quote

from fastness.crypto.secret import SecretText
from fastness.http import Answer, Request
from fastness.http.answers import Headers
from fastness.http.refusals import Refusal
from fastness.kube.access import User
from fastness.kube.errors import BadRequest, Forbidden, NotFound
from fastness.page.admission import Admitted, Doorkeeper
from fastness.page.pages.layout import Frame
from fastness.page.pages.login import login_page, onwards_page
from fastness.page.provider_login import AWAY, NotLoggedIn, ProviderLogins
from fastness.page.routes import MAX_NAME, after_login
from fastness.page.sessions import LIFETIME, LOGIN_LIFETIME, Credential, Session, Sessions
from fastness.page.view_scope import Stock, ViewScope

HTML: Final = b"text/html; charset=utf-8"
FORM: Final = ("application/x-www-form-urlencoded",)
MAX_FORM: Final = 32 * 1024
MAX_FIELDS: Final = 16
LOGIN_FORM_SECONDS: Final = int(LOGIN_LIFETIME.total_seconds())
SESSION_SECONDS: Final = int(LIFETIME.total_seconds())
NO_STORE: Final[Headers] = ((b"cache-control", b"no-store"),)
Form = Mapping[str, str]
MakeFrame = Callable[[User | None, Session | None], Frame]


class ToLogin(Refusal):
    """Nobody is logged in: a browser is led to the form, and back to the view that it asked for."""

    def __init__(self, request: Request) -> None:
        super().__init__(303, "not-logged-in", "log in first")
        query = request.raw_query.decode("ascii", "replace")
        view = request.path + (f"?{query}" if query else "") if request.method != "POST" else "/"
        self._location = f"/login?then={quote(after_login(view), safe='')}"

    def answer(self) -> Answer:
        """The way to the form."""
        return redirect(self._location)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of somebody who is logged in."""

    request: Request
    session: Session
    admitted: Admitted
    scope: ViewScope
    frame: Frame

    @property
    def name(self) -> str:
        """The name in the path; empty where none belongs."""
        return self.request.values[0] if self.request.values else ""


class Visits:
    """Makes visits of requests, and logs people in and out."""

    def __init__(
        self, visitors: Doorkeeper, sessions: Sessions, stock: Stock, frame: MakeFrame, provider: ProviderLogins | None
    ) -> None:
        self._provider = provider
        self._visitors = visitors
        self._sessions = sessions
        self._stock = stock
        self._frame = frame

    # -- what routes demand

    async def of(self, request: Request, *, about_machine: bool = False) -> Visit:
        """The visit of a request; raises ToLogin, Forbidden for a form of another site, NotFound for a name that nothing has."""
        demand_own_origin(request)
        if any(len(value) > MAX_NAME for value in request.values):
            raise NotFound("there is no such page")
        session = self.session_of(request)
        if session is None:
            raise ToLogin(request)
        # At every request: a session is no right, and a token that was revoked a moment ago opens nothing.
        admitted = await self._visitors.admit(session.credential, request.values[0] if about_machine else "")
        if admitted is None:
            raise ToLogin(request)
        scope = ViewScope(admitted.user, admitted.rights, self._stock)
        return Visit(request, session, admitted, scope, self._frame(admitted.user, session))

    async def about_machine(self, request: Request) -> Visit:
        """The same for a route about one machine, for which somebody may have rights by name."""
        return await self.of(request, about_machine=True)

    async def listening(self, request: Request) -> Visit:
        """The same for a stream of events, which ends without a login: no person would see the form."""
        try:
            return await self.of(request)
        except ToLogin as error:
            raise Refusal(401, "not-logged-in", "log in first") from error

    async def goes_on(self, visit: Visit) -> bool:
        """Whether a visit that takes long still has its session, and the session a credential that counts."""
        session = self.session_of(visit.request)
        return session is not None and await self._visitors.admit(session.credential) is not None

    def session_of(self, request: Request) -> Session | None:
        """The session whose cookie a request carries."""
        return self._sessions.find(_cookie(request, self._sessions.cookie))

    def posted(self, act: Callable[[Visit, Form], Awaitable[Answer]]) -> Callable[[Request, Visit], Awaitable[Answer]]:
        """The handler of a form: what is done needs the token that only a page of this session has."""

        async def handler(request: Request, visit: Visit) -> Answer:
            form = form_of(request)
            if not self._sessions.is_ours(visit.session, form.get("token", "")):
                raise Forbidden("this form is not from this page, or from an older login")
            return await act(visit, form)

        return handler

    # -- logging in and out

    async def login_form(self, request: Request, _caller: None) -> Answer:
        """The form, or the confirmation of a one-time link: looking at a link does not use it up."""
        key, problem = request.query.get("key", ""), ""
        if key and not self._sessions.link_counts(key):
            key, problem = "", "This link was used already, or is older than five minutes. Log in with a token instead."
        return self._form(200, request.query.get("then", "/"), key, problem)

    def _form(self, code: int, then: str, key: str = "", problem: str = "") -> Answer:
        cookie, token = self._sessions.before_login()
        asked = f"/login/provider?then={quote(after_login(then), safe='')}" if self._provider is not None else ""
        body = login_page(self._frame(None, None), token, after_login(then), key, problem, asked)
        cookies = (_set_cookie(self._sessions.login_cookie, cookie, LOGIN_FORM_SECONDS),)
        return Answer(code, body, HTML, (*cookies, *NO_STORE))

    async def log_in(self, request: Request, _caller: None) -> Answer:
        """A session for whoever the API knows, begun from our own form."""
        sessions, form = self._sessions, form_of(request)
        then = form.get("then", "/")
        if not sessions.is_our_login(_cookie(request, sessions.login_cookie), form.get("form", "")):
            return self._form(403, then, problem="The form was too old. Please try again.")
        credential = _credential(sessions, form)
        if credential is None or await self._visitors.admit(credential) is None:
            return self._form(401, then, problem="That does not log in: the API does not know it.")
        return redirect(after_login(then), self._begun(request, credential))

    def _begun(self, request: Request, credential: Credential) -> Headers:
        """The cookies of a new session."""
        sessions, before = self._sessions, self.session_of(request)
        # The session of before ends here and now, or its cookie would stay good somewhere else.
        if before is not None:
            sessions.end(before)
        _, cookie = sessions.begin(credential)
        return _set_cookie(sessions.cookie, cookie, SESSION_SECONDS), _set_cookie(sessions.login_cookie, "", 0)

    async def leave_for_provider(self, request: Request, _caller: None) -> Answer:
        """Away to the identity provider."""
        then = request.query.get("then", "/")
        try:
            location, browser = self._logins.leave(then)
        except NotLoggedIn as error:
            return self._form(503, then, problem=str(error))
        # Lax: the way back is a link of another site, with which a browser sends no strict cookie.
        away = _set_cookie(self._sessions.away_cookie, browser, int(AWAY.total_seconds()), "Lax")
        return redirect(location, (away,))

    async def return_from_provider(self, request: Request, _caller: None) -> Answer:
        """Back from the identity provider."""
        browser = _cookie(request, self._sessions.away_cookie)
        try:
            credential, then = await self._logins.return_with(dict(request.query), browser)
        except NotLoggedIn as error:
            return self._form(403, "/", problem=str(error))
        if await self._visitors.admit(credential) is None:
            return self._form(401, then, problem="That does not log in: the API does not know it.")
        gone = _set_cookie(self._sessions.away_cookie, "", 0, "Lax")
        onwards = (b"refresh", f"0;url={then}".encode())
        body = onwards_page(self._frame(None, None), then)
        return Answer(200, body, HTML, (*self._begun(request, credential), gone, onwards, *NO_STORE))

    @property
    def _logins(self) -> ProviderLogins:
        if self._provider is None:
            raise NotFound("nobody set up an identity provider")
        return self._provider

    async def log_out(self, visit: Visit, _form: Form) -> Answer:
        """End the session, for everybody who has its cookie."""
        self._sessions.end(visit.session)
        return redirect("/login", (_set_cookie(self._sessions.cookie, "", 0),))


async def from_own_page(request: Request) -> None:
    """What the login demands: a form of this site; raises Forbidden."""
    demand_own_origin(request)


def demand_own_origin(request: Request) -> None:
    """Go on with a POST only if it is not of another site; raises Forbidden."""
    if request.method != "POST":
        return
    origin, host = request.header(b"origin"), request.header(b"host")
    # same-site as well: a neighbour below the same domain gets the SameSite cookie sent along.
    if (origin and origin != f"https://{host}") or request.header(b"sec-fetch-site") in ("cross-site", "same-site"):
        raise Forbidden("a form of another site cannot act here")


def form_of(request: Request) -> dict[str, str]:
    """The fields of a form; raises BadRequest."""
    try:
        text = request.content.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise BadRequest("the form cannot be read") from error
    return dict(pairs)


def redirect(location: str, cookies: Headers = ()) -> Answer:
    """Lead a browser elsewhere on this page."""
    return Answer(303, b"", HTML, ((b"location", location.encode()), *cookies, *NO_STORE))


def _credential(sessions: Sessions, form: Form) -> Credential | None:
    if form.get("key"):
        return sessions.redeem(form["key"])
    token = form.get("bearer", "").strip().removeprefix("Bearer ").strip()
    return Credential(token=SecretText(token)) if token and token.isascii() and token.isprintable() else None


def _cookie(request: Request, name: str) -> str:
    for header in request.headers(b"cookie"):
        try:
            morsel = SimpleCookie(header).get(name)
        except CookieError:
            continue
        if morsel is not None:
            return morsel.value
    return ""


def _set_cookie(name: str, value: str, seconds: int, site: str = "Strict") -> tuple[bytes, bytes]:
    # RFC 6265bis, 4.1.3.2: a __Host- name asks for Secure, Path=/ and no Domain, so a neighbour cannot set it over ours.
    return b"set-cookie", f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite={site}".encode()
