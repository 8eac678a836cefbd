"""Bootstrap tokens of pools that do not attest, one for each answer of the config server to a machine that boots.

    token = await PoolTokens(cluster, clock, entropy).issue(pool, ticket=name)        # "abcdef.0123456789abcdef"

    config server  Secret fastness-pool-joins/ask-<id>           the token that it wants to hand out, for which pool and ticket
    controllers    Secret kube-system/bootstrap-token-<id>       the same as kubeadm makes them, so any API server accepts it

The way is that of tokens for machines that attest (`bootstrap_tokens.py`), and nothing of it is shared: a namespace, a type, a
label and a group of its own. A config server that was taken over asks for tokens of pools that do not attest, and for no other.

* Ids are drawn by lot. When one is taken, the controllers say so, and another is drawn.
* What the controllers refuse (too many unused tokens, a ticket that is gone) they write on what asked, so that the machine is
  told to come again. Whatever was answered is swept a minute later.
* How many are asked for at once is bounded: each is a write to the cluster, and a ticket is all that it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from fastness.crypto.secret import SecretText
from fastness.enrolment.live.bootstrap_tokens import NAMESPACE, PREFIX, TYPE, encoded, random_letters, secret_value
from fastness.enrolment.live.bootstrap_tokens import is_well_formed as is_token
from fastness.enrolment.unattested import LIFETIME, POOL_GROUP, PoolToken
from fastness.keys.authorities import SECRETS, create_in_namespace
from fastness.keys.errors import TokenContended
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, labels_of, object_name, rfc3339
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.places import POOL_JOINS
from fastness.kube.port import Cluster, WriteOptions
from fastness.runtime.clock import Clock, Entropy

ASKED_TYPE: Final = "fastness.dev/pool-token"
ASKED_PREFIX: Final = "ask-"
LABEL: Final = "fastness.dev/pool-token"
POOL: Final = "fastness.dev/pool"
TICKET: Final = "fastness.dev/ticket-name"
STUB: Final = "fastness.dev/legacy-stub"
NODE: Final = "fastness.dev/node"
KEY: Final = "fastness.dev/join-key"
ANSWER: Final = "fastness.dev/answer"
PUBLISHED: Final = "published"
TAKEN: Final = "id-taken"
TOO_MANY: Final = "too-many-tokens"
NOT_ALLOWED: Final = "not-allowed"
AT_ONCE: Final = 64
ANSWER_SECONDS: Final = 6.0  # below what a door gives a request, so that its reason reaches the machine
_TRIES: Final = 4
_PAUSE, _LONGEST_PAUSE = 0.01, 0.5
_ID, _SECRET = 6, 16
_AS: Final = WriteOptions(manager="configserver")
_REFUSED: Final = {
    TOO_MANY: (
        "too many tokens of this pool are unused",
        "Look who has a ticket of the pool; unused tokens end by themselves.",
    ),
    NOT_ALLOWED: ("the controllers give no token for this pool and ticket", "See whether both are still there."),
}


class PoolTokens:
    """Asks for tokens."""

    def __init__(self, cluster: Cluster, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy
        self._asking = 0

    async def issue(self, pool: str, *, ticket: str = "", stub: str = "") -> SecretText:
        """A token for a machine that showed a ticket, or came as a legacy stub; raises TokenContended, ApiError."""
        if self._asking >= AT_ONCE:
            raise TokenContended("too many machines ask for a token at once", "Let them come again.")
        self._asking += 1
        try:
            for _ in range(_TRIES):
                token = await self._drawn(pool, ticket, stub)
                if token is not None:
                    return token
        finally:
            self._asking -= 1
        raise TokenContended("no id for a bootstrap token is free", "Delete bootstrap tokens that nobody uses.")

    async def _drawn(self, pool: str, ticket: str, stub: str) -> SecretText | None:
        """A token with an id drawn by lot; None when somebody else has the id."""
        identity, secret = random_letters(self._entropy, _ID), random_letters(self._entropy, _SECRET)
        token = PoolToken(identity, pool, self._clock.now() + LIFETIME, ticket, stub)
        try:
            await create_in_namespace(self._cluster, _asking(token, secret), _AS)
        except AlreadyExists:
            return None
        answer = await self._answer(identity)
        if answer == TAKEN:
            return None
        if answer != PUBLISHED:
            raise TokenContended(*_REFUSED.get(answer, _REFUSED[NOT_ALLOWED]))
        return SecretText(f"{identity}.{secret}")

    async def _answer(self, identity: str) -> str:
        """What the controllers say to what was asked for; raises TokenContended while they say nothing."""
        end, pause = self._clock.monotonic() + ANSWER_SECONDS, _PAUSE
        while self._clock.monotonic() < end:
            try:
                request = await self._cluster.get(SECRETS, f"{ASKED_PREFIX}{identity}", POOL_JOINS)
            except NotFound:
                return NOT_ALLOWED
            answer = annotations_of(request).get(ANSWER, "")
            if answer:
                return answer
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise TokenContended(
            "the controllers have not published the bootstrap token", "See that they run, and ask again."
        )


def asked_token(secret: Mapping[str, Any]) -> PoolToken | None:
    """What the config server asks for in a Secret; None when it cannot be read."""
    return _token(secret, ASKED_TYPE, ASKED_PREFIX)


def pool_token(secret: Mapping[str, Any]) -> PoolToken | None:
    """What a Secret of kube-system says of a token; None when it is not one of a pool, or cannot be read."""
    return _token(secret, TYPE, PREFIX)


def published(asking: Mapping[str, Any], token: PoolToken) -> JsonObject | None:
    """The Secret by which the API accepts a token that the config server asks for; None when it would be none."""
    secret = secret_value(asking, "token-secret")
    if not is_token(token.id, secret):
        return None
    data = {
        "token-id": token.id, "token-secret": secret, "expiration": rfc3339(token.expires),
        "usage-bootstrap-authentication": "true", "auth-extra-groups": POOL_GROUP,
        "description": f"for one new node of the pool {token.pool}"[:256],
    }  # fmt: skip
    # Made from what was understood: neither node nor key is anything that the config server may say.
    notes = {POOL: token.pool, TICKET: token.ticket, STUB: token.stub}
    meta = {"name": f"{PREFIX}{token.id}", "namespace": NAMESPACE, "labels": {LABEL: "true"}, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": meta, "data": encoded(data)}


def _asking(token: PoolToken, secret: str) -> JsonObject:
    data = {"token-id": token.id, "token-secret": secret, "expiration": rfc3339(token.expires)}
    notes = {POOL: token.pool, TICKET: token.ticket, STUB: token.stub}
    return {
        "apiVersion": "v1", "kind": "Secret", "type": ASKED_TYPE,
        "metadata": {
            "name": f"{ASKED_PREFIX}{token.id}", "namespace": POOL_JOINS, "labels": {LABEL: "true"}, "annotations": notes,
        },
        "data": encoded(data),
    }  # fmt: skip


def _token(secret: Mapping[str, Any], kind: str, prefix: str) -> PoolToken | None:
    name, notes, identity = object_name(secret).name, annotations_of(secret), secret_value(secret, "token-id")
    ours = secret.get("type") == kind and labels_of(secret).get(LABEL) == "true"
    # The API accepts a token by the name of its Secret: with another id inside, two Secrets would be one token.
    if not ours or name != f"{prefix}{identity}" or not notes.get(POOL):
        return None
    try:
        expires = datetime.fromisoformat(secret_value(secret, "expiration"))
    except ValueError:
        return None
    return PoolToken(
        identity, notes[POOL], expires if expires.tzinfo else expires.replace(tzinfo=UTC), notes.get(TICKET, ""),
        notes.get(STUB, ""), notes.get(NODE, ""), notes.get(KEY, ""),
    )  # fmt: skip
