"""The door that an API server knocks on with every write that it was told to ask about.

Anybody who reaches it may ask, and gets an answer that changes nothing; how much one may ask at once is bounded, and so is the
size of a review (an API server takes objects of 3 MiB, and an update shows two). What the API server itself asks (`paths`) and is
allowed goes on the record with the person first, where it is an act of one. Whatever goes wrong in here is a refusal with the id
under which the log tells more: a rule that crashed has not allowed anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from fastness.admission.door.configuration import KATA_PATH, REVIEW_PATH
from fastness.admission.door.registration import RecordedPath
from fastness.admission.door.reviews import BadReview, encode_answer, read_review
from fastness.admission.table import BEHIND_WEBHOOK
from fastness.attestation.admission.acts import acts_of, is_authorship
from fastness.attestation.live.named_record import RecordedActs
from fastness.http import Answer, Request
from fastness.http.edge import UNREADABLE, Door, ErrorTable, application, demand_media, healthy, nothing_but
from fastness.http.refusals import Refusal
from fastness.http.route import JSON_ONLY, OPEN, READING, UNLIMITED, Auth, Limit, NoRoute, Route, Routes
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied
from fastness.kube.admission import Answer as Decision
from fastness.kube.errors import ApiError
from fastness.kube.places import AT_HOME, Places
from fastness.observe import logs, metrics
from fastness.runtime.clock import Entropy

MAX_BODY: Final = 8 * 1024 * 1024
MAX_IN_FLIGHT: Final = 128
_log = logs.logger("webhook")

POST: Final = ("POST",)
DOOR: Final = Door("webhook")
Prepare = Callable[[AdmissionRequest], Awaitable[tuple[AdmissionRequest, AdmissionLookups]]]


@dataclass(frozen=True, slots=True)
class RecordedReviews:
    """The path on which the API server asks, and where acts of people are written down."""

    path: RecordedPath
    log: RecordedActs
    places: Places = AT_HOME


class WebhookDoor:
    """Admission: `app` is its application; `prepare` completes a request and gives its lookups."""

    def __init__(
        self, prepare: Prepare, entropy: Entropy, acts: RecordedReviews | None = None, *, in_flight: int = MAX_IN_FLIGHT
    ) -> None:
        self._prepare = prepare
        self._acts = acts
        self._most = in_flight
        self._in_flight = 0
        # A body may have megabytes, so it is read inside the lane.
        limit: Limit[RecordedReviews | None] = Limit(lambda _request, _acts: self._counted())
        recorded = Auth("the path that only the API server was told", self._recorded)
        routes: Routes = (
            Route("health", READING, "/healthz", OPEN, UNLIMITED, healthy),
            Route("review", POST, REVIEW_PATH, OPEN, limit, self._review),
            Route("kata-review", POST, KATA_PATH, OPEN, limit, self._review),
            Route("recorded-review", POST, f"{REVIEW_PATH}/<key>", recorded, limit, self._review),
        )
        errors: ErrorTable = {**nothing_but(f"there is POST {REVIEW_PATH}"), **UNREADABLE, BadReview: _bad_review}
        self.app = application(DOOR, routes, errors, entropy)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count one review for the time of the block; raises Refusal."""
        if self._in_flight >= self._most:
            raise Refusal(503, "overloaded", "too many reviews at once")
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    async def _recorded(self, request: Request) -> RecordedReviews:
        """Where the acts of people are written down, for an API server that has our configuration; raises NoRoute."""
        if self._acts is None or not self._acts.path.counts(request.path):
            raise NoRoute
        return self._acts

    async def _review(self, request: Request, acts: RecordedReviews | None) -> Answer:
        demand_media(request, JSON_ONLY)
        review = read_review(await request.body(MAX_BODY))
        decision = await self._decide(review.request, acts)
        metrics.REVIEWS.inc("refused" if isinstance(decision, Denied) else "allowed")
        return Answer(200, encode_answer(review.uid, decision))

    async def _decide(self, request: AdmissionRequest, acts: RecordedReviews | None) -> Decision:
        """The decision; a defect of ours is a refusal, and so is an act that cannot be recorded."""
        try:
            decision = BEHIND_WEBHOOK.review(*await self._prepare(request))
            if acts is not None and not isinstance(decision, Denied):
                await _record(acts, request)
            return decision
        except ApiError as error:
            _log.warning("webhook.unavailable", error=error)
            return Denied(
                f"{request.target}: the cluster could not be asked about it: {error.message}", 503, "ServiceUnavailable"
            )
        except Exception:  # noqa: BLE001  # the HTTP edge: a rule that crashed must refuse, not leave it to a failure policy
            _log.exception("request.failed", method="POST")
            metrics.DEFECTS.inc("webhook")
            defect = f"an internal error, see the log of the webhook under {logs.current_correlation()}"
            return Denied(f"{request.target}: {defect}", 500, "InternalError")


async def _record(acts: RecordedReviews, request: AdmissionRequest) -> None:
    """Write the acts of a person down; raises ApiError for those that must not happen without an entry."""
    for act in acts_of(request, acts.places):
        try:
            await acts.log.append(act)
        except ApiError as error:
            if not is_authorship(act):
                raise
            _log.warning("webhook.author_unrecorded", what=act.what, resource=act.resource, error=str(error))


def _bad_review(error: BadReview, _route: str) -> Refusal:
    return Refusal(400, error.code, f"{error}. {error.hint}")
