"""How every door says no.

One table for gate, config server, enrolment and broker: Ignition retries 5xx for ever and ends at the first 4xx, so a state that
will pass is 503 with Retry-After, and a final refusal is 403. The body is small JSON with a stable code, never more than the
caller may know.

    401  no or bad credential, replayed or expired challenge, ticket used up
    403  a final refusal: bad signature, debug, revoked, wrong pool or machine, policy
    404  unknown, after authorization
    400  malformed (413, 415, 431 by size and type)
    503  not yet: not attested, values not published, collateral stale, the API or the verifier down, overload
"""

from __future__ import annotations

from typing import Final

from fastness.formats import json
from fastness.http import Answer
from fastness.http.answers import Headers
from fastness.http.freshness import Touch
from fastness.keys.home import GONE

RETRY_SECONDS: Final = 5
MAX_DETAIL: Final = 160
# As much as the contract of the doors allows: whoever is refused learns a code and one sentence.
MAX_BODY: Final = 300
HOME_GONE: Final = "home-gone"
ERRORS: Final = "https://fastness.dev/errors/"


class Refusal(Exception):
    """An answer that is not what was asked for."""

    def __init__(
        self, status: int, code: str, detail: str, verdict: str = "", retry: int = RETRY_SECONDS, headers: Headers = ()
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.verdict, self.retry = status, code, detail, verdict, retry
        self.headers = headers

    def answer(self) -> Answer:
        """The refusal as it goes out; the detail gives way where the body would grow too long."""
        body = self._body(self.detail[:MAX_DETAIL])
        while len(body) > MAX_BODY and self.detail:
            self.detail = self.detail[: min(len(self.detail), MAX_DETAIL) // 2]
            body = self._body(self.detail)
        # Only what passes says when to come again (RFC 9110 §10.2.3): after a final refusal nobody shall wait.
        wait = ((b"retry-after", b"%d" % self.retry),) if self.status == 503 else ()
        return Answer(self.status, body, headers=(*self.headers, *wait))

    def _body(self, detail: str) -> bytes:
        content = {"type": f"{ERRORS}{self.code}", "code": self.code, "detail": detail}
        if self.verdict:
            content["verdict"] = self.verdict
        return json.encode(content)


def demand_home(touch: Touch) -> None:
    """Go on only while the namespace of ours is there; raises Refusal. It may come back, so the refusal is not a final one."""
    if touch.homeless:
        raise Refusal(503, HOME_GONE, GONE)


def demand_followed_home(touch: Touch) -> None:
    """The same, and only while the door hears of its namespace; raises Refusal.

    Caches come back one by one after an outage: tickets of a cluster that is empty must not be asked for before that is known.
    """
    demand_home(touch)
    if not touch.in_touch:
        raise Refusal(503, "cluster-unavailable", "the cluster cannot be asked now")
