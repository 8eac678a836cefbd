"""The door that an API server knocks on with every write that it was told to ask about.

Anybody who reaches it may ask, and gets an answer that changes nothing; how much one may ask at once is bounded, and so is the
size of a review (an API server takes objects of 3 MiB, and an update shows two). What the API server itself asks (`paths`) and is
allowed goes on the record with the person first, where it is an act of one. Whatever goes wrong in here is a refusal with the id
under which the log tells more: a rule that crashed has not allowed anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from fastness.cluster.clock import Entropy
from fastness.cluster.errors import ApiError, BadRequest, TooLarge, UnsupportedMedia
from fastness.domain.admission import AdmissionRequest, Denied
from fastness.domain.admission.acts import acts_of
from fastness.domain.admission.request import AdmissionLookups
from fastness.domain.admission.request import Answer as Decision
from fastness.domain.admission.review import BEHIND_WEBHOOK
from fastness.domain.places import AT_HOME, Places
from fastness.observe import context, logs, metrics
from fastness.services.http import Answer, Request, send_answer
from fastness.services.http.request import ClientGone, SlowBody
from fastness.services.refusals import Refusal
from fastness.services.webhook.configuration import KATA_PATH, REVIEW_PATH
from fastness.services.webhook.paths import RecordedPath
from fastness.services.webhook.reviews import BadReview, answered, read_review
from fastness.trust.personacts import RecordedActs

MAX_BODY: Final = 8 * 1024 * 1024
MAX_IN_FLIGHT: Final = 128
_log = logs.logger("webhook")

Prepare = Callable[[AdmissionRequest], Awaitable[tuple[AdmissionRequest, AdmissionLookups]]]


class Auth(StrEnum):
    """What a caller must show."""

    OPEN = "open"


class Route(NamedTuple):
    """One way in."""

    path: str
    methods: tuple[str, ...]
    auth: Auth


ROUTES: Final = (
    Route("/healthz", ("GET", "HEAD"), Auth.OPEN),
    Route(REVIEW_PATH, ("POST",), Auth.OPEN),
    Route(KATA_PATH, ("POST",), Auth.OPEN),
)


@dataclass(frozen=True, slots=True)
class RecordedReviews:
    """The path on which the API server asks, and where acts of people are written down."""

    path: RecordedPath
    log: RecordedActs
    places: Places = AT_HOME


class WebhookDoor:
    """Admission as an application; `prepare` completes a request and gives its lookups."""

    def __init__(
        self, prepare: Prepare, entropy: Entropy, acts: RecordedReviews | None = None, *, in_flight: int = MAX_IN_FLIGHT
    ) -> None:
        self._prepare = prepare
        self._acts = acts
        self._entropy = entropy
        self._most = in_flight
        self._in_flight = 0

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        correlation = context.begin(self._entropy.uid())
        self._in_flight += 1
        try:
            answer = await self._answer(request)
        except ClientGone:
            return
        except Refusal as refusal:
            answer = refusal.answer()
        except (TooLarge, UnsupportedMedia, BadRequest, SlowBody) as error:
            answer = Refusal(error.code, error.reason, error.message).answer()
        finally:
            self._in_flight -= 1
        await send_answer(answer, send, ((b"audit-id", correlation.encode()),), head=request.method == "HEAD")

    async def _answer(self, request: Request) -> Answer:
        recorded = self._acts is not None and self._acts.path.counts(request.path)
        path = REVIEW_PATH if recorded else request.path
        route = next((one for one in ROUTES if one.path == path), None)
        if route is None:
            raise Refusal(404, "not-found", f"there is POST {REVIEW_PATH}")
        if request.method not in route.methods:
            raise Refusal(405, "method-not-allowed", f"only {' and '.join(route.methods)}")
        if "POST" not in route.methods:
            return Answer(200, b"")
        if self._in_flight > self._most:
            raise Refusal(503, "overloaded", "too many reviews at once")
        if request.header(b"content-type").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "unsupported-media-type", "send application/json")
        try:
            asked = read_review(await request.body(MAX_BODY))
        except BadReview as error:
            raise Refusal(400, error.code, f"{error}. {error.hint}") from error
        decision = await self._decide(asked.request, self._acts if recorded else None)
        metrics.REVIEWS.inc("refused" if isinstance(decision, Denied) else "allowed")
        return Answer(200, answered(asked.uid, decision))

    async def _decide(self, request: AdmissionRequest, acts: RecordedReviews | None) -> Decision:
        """The decision; a defect of ours is a refusal, and so is an act that cannot be recorded."""
        try:
            decision = BEHIND_WEBHOOK.review(*await self._prepare(request))
            if acts is not None and not isinstance(decision, Denied):
                for act in acts_of(request, acts.places):
                    await acts.log.append(act)
            return decision
        except ApiError as error:
            _log.warning("webhook.unavailable", error=error)
            return Denied(
                f"{request.target}: the cluster could not be asked about it: {error.message}", 503, "ServiceUnavailable"
            )
        except Exception:  # noqa: BLE001  # the HTTP edge: a rule that crashed must refuse, not leave it to a failure policy
            _log.exception("request.failed", method="POST")
            metrics.DEFECTS.inc("webhook")
            told = f"an internal error, see the log of the webhook under {context.current()}"
            return Denied(f"{request.target}: {told}", 500, "InternalError")
