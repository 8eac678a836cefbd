"""The page over HTTP: its table of routes, its views, and what people do on it.

A request goes through the edge of all doors (`http/edge.py`): route (404), what the route demands (a session, or the way to the
login), the form if it has one, then a view or an act as that user. Rules:

* Every answer carries a content security policy under which a browser runs nothing but our one script, and may not be framed.
* A refusal is a page with a hint; of what nobody expected it says the correlation id and nothing else: the story is in the log.
* A bounded number of requests is answered at once, the question who somebody is included: on Kubernetes that is one to the API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from fastness.http import Answer, Request, Stream
from fastness.http.answers import Headers
from fastness.http.edge import Door, Edge, ErrorTable, application
from fastness.http.refusals import Refusal
from fastness.http.route import OPEN, READING, UNLIMITED, Auth, Body, Limit, NoRoute, Route, Routes
from fastness.kube.access import User
from fastness.kube.errors import ApiError, NotFound, Unavailable
from fastness.page.acts import MAX_NAME, Act, AuditAct, Notices, carry_out, operate
from fastness.page.admission import Doorkeeper
from fastness.page.fleet import Rows
from fastness.page.live_updates import News
from fastness.page.pages.layout import Frame
from fastness.page.pages.login import problem_page
from fastness.page.pages.parts import machine_path
from fastness.page.provider_login import CALLBACK, ProviderLogins
from fastness.page.record import Reader
from fastness.page.routes import VIEW_PATHS, Assets
from fastness.page.sessions import Session, Sessions
from fastness.page.simulator import Simulator, aimed_at
from fastness.page.view_scope import Stock
from fastness.page.views import VIEWS
from fastness.page.views.view_request import ViewRequest
from fastness.page.visits import FORM, HTML, MAX_FORM, NO_STORE, Form, ToLogin, Visit, Visits, from_own_page, redirect
from fastness.runtime.clock import Clock, Entropy

DOOR: Final = "page"
MAX_IN_FLIGHT: Final = 100
# Nothing but our own script runs, so a text that got past the escaping is still no code; and no site can frame a decision.
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
FOR_EVER: Final[Headers] = ((b"cache-control", b"public, max-age=31536000, immutable"),)


class Problem(Refusal):
    """A refusal in the words of the API, with its hint."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.code, error.reason, error.message)
        self.hint = error.hint


ERRORS: Final[ErrorTable] = {
    ApiError: lambda error, _route: Problem(error),
    NoRoute: lambda _error, _route: Problem(NotFound("there is no such page")),
}


class PageApp:
    """The page: `app` is its application. `audit` writes a line about everything that somebody does, also when it is refused."""

    def __init__(
        self,
        *,
        visitors: Doorkeeper,
        stock: Stock,
        sessions: Sessions,
        news: News,
        reader: Reader,
        audit: AuditAct,
        clock: Clock,
        entropy: Entropy,
        simulator: Simulator | None = None,
        provider: ProviderLogins | None = None,
    ) -> None:
        self._stock = stock
        self._sessions = sessions
        self._news = news
        self._reader = reader
        self._audit = audit
        self._clock = clock
        self._simulator = simulator
        self._assets = Assets()
        self._rows = Rows()
        self._notices = Notices(clock)
        self._visits = Visits(visitors, sessions, stock, self._frame, provider)
        self._in_flight = 0
        self.app: Edge = application(Door(DOOR, headers=SAFE, say=self._say), self._routes(), ERRORS, entropy)

    def prepare(self) -> None:
        """Make the row of every machine before somebody looks: of thousands that is the longest part of a first answer."""
        now = self._clock.now()
        self._rows.of(*self._stock.fleet(), self._stock.rules(now), now)

    def _routes(self) -> Routes:
        visits = self._visits
        session = Auth("a session", self._at_once(visits.of))
        about_machine = Auth("a session", self._at_once(visits.about_machine))
        look, form = Limit(self._place), Limit(self._place, Body(MAX_FORM, FORM, self._place))
        views = (
            Route(name, READING, path, about_machine if name == "machine" else session, look, partial(self._view, name))
            for name, path in VIEW_PATHS.items()
        )
        return (
            *views,
            Route("decision", ("POST",), "/machines/<name>/decision", about_machine, form, visits.posted(self._decide)),
            Route("simulate", ("POST",), "/simulator", session, form, visits.posted(self._simulate)),
            Route("logout", ("POST",), "/logout", session, form, visits.posted(visits.log_out)),
            Route(
                "events", ("GET",), "/events", Auth("a session", self._at_once(visits.listening)), look, self._events
            ),
            Route("login-form", READING, "/login", OPEN, look, visits.login_form),
            Route("login", ("POST",), "/login", Auth("our own form", from_own_page), form, visits.log_in),
            Route("provider", ("GET",), "/login/provider", OPEN, look, visits.leave_for_provider),
            Route("callback", ("GET",), CALLBACK, OPEN, look, visits.return_from_provider),
            Route("asset", READING, "/assets/<name>", OPEN, UNLIMITED, self._asset),
        )

    # -- how much at once

    @contextmanager
    def _place(self, *_: object) -> Iterator[None]:
        """A place among those who are answered at once; raises Unavailable when all are taken."""
        if self._in_flight >= MAX_IN_FLIGHT:
            raise Unavailable("too many people look at this page at once")
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    def _at_once(self, check: Callable[[Request], Awaitable[Visit]]) -> Callable[[Request], Awaitable[Visit]]:
        """The same check, which takes a place while it asks."""

        async def visit_of(request: Request) -> Visit:
            with self._place():
                return await check(request)

        return visit_of

    # -- views and acts

    async def _view(self, name: str, request: Request, visit: Visit) -> Answer:
        view = ViewRequest(
            visit.scope, visit.frame, visit.name, request.query, self._reader, self._rows, visit.admitted.acting,
            self._simulator, self._notices.of(visit.session.id),
        )  # fmt: skip
        try:
            return Answer(200, await VIEWS[name](view), HTML, NO_STORE)
        except ApiError as error:
            return self._say(Problem(error), visit.frame)

    async def _decide(self, visit: Visit, form: Form) -> Answer:
        code = 500
        try:
            await carry_out(visit.admitted.acting, visit.scope, visit.name, form)
            code = 200
        except ApiError as error:
            code = error.code
            return self._say(Problem(error), visit.frame)
        finally:
            self._audit(visit.request, visit.scope.user, Act("patch", visit.name), code)
        return redirect("/" if form.get("then") == "fleet" else machine_path(visit.name))

    async def _simulate(self, visit: Visit, form: Form) -> Answer:
        code = 500
        try:
            notice = await operate(self._simulator, visit.scope, form)
            code = 200
        except ApiError as error:
            code = error.code
            return self._say(Problem(error), visit.frame)
        finally:
            act = Act(form.get("action", "")[:MAX_NAME], aimed_at(form)[:MAX_NAME], simulator=True)
            self._audit(visit.request, visit.scope.user, act, code)
        self._notices.put(visit.session.id, notice)
        self._news.tell("simulator")
        return redirect(VIEW_PATHS["simulator"])

    async def _events(self, _request: Request, visit: Visit) -> Answer | Stream:
        if self._news.full:
            return Answer(503, b"", b"text/plain", ((b"retry-after", b"10"), *NO_STORE))
        chunks = self._news.stream(partial(self._visits.goes_on, visit))
        return Stream(200, chunks, b"text/event-stream", NO_STORE)

    async def _asset(self, request: Request, _caller: None) -> Answer:
        asset = self._assets.get(request.values[0])
        if asset is None:
            raise NotFound("there is no such file")
        return Answer(200, asset.content, asset.content_type, FOR_EVER)

    # -- what every page has

    def _say(self, refusal: Refusal, frame: Frame | None = None) -> Answer:
        """A refusal for a person: the way to the login, or a page that says what is wrong."""
        if isinstance(refusal, ToLogin):
            return refusal.answer()
        hint = refusal.hint if isinstance(refusal, Problem) else ""
        page = problem_page(frame or self._frame(), refusal.status, refusal.detail, hint)
        return Answer(refusal.status, page, HTML, (*refusal.headers, *NO_STORE))

    def _frame(self, user: User | None = None, session: Session | None = None) -> Frame:
        return Frame(
            self._clock.now(), user.name if user else "", self._sessions.form_token(session) if session else "",
            self._stock.simulated, self._news.silent_since, self._assets.stylesheet, self._assets.script,
            self._simulator is not None, self._stock.alerts,
        )  # fmt: skip
