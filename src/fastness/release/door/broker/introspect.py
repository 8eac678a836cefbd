"""Introspection of tokens (RFC 7662 in shape): whether a token counts at this moment, for our own parts alone.

A signature says what was true when a token was issued. Whether it still is, after a revocation, only the broker's caches know, so
the gate may ask here. A caller shows a client certificate of the internal authority; whoever has none learns nothing, not even
that a token is good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl

from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.http import Answer, Request
from fastness.http.refusals import Refusal
from fastness.keys.errors import BadToken
from fastness.keys.internal import asking_role
from fastness.protocol.door import DoorRole
from fastness.release.live.tokens import AUDIENCES, GATE, Revocations, TokenVerifier

MAX_BODY: Final = 32 * 1024
FORM: Final = "application/x-www-form-urlencoded"


def internal_caller(request: Request, trusted: Callable[[], Sequence[Certificate]], now: datetime) -> DoorRole:
    """The part of ours that asks; raises Refusal."""
    if request.peer is None:
        raise Refusal(401, "certificate-required", "show a client certificate of the internal authority")
    try:
        role = asking_role(Certificate.from_der(request.peer), trusted(), now)
    except CryptoError as error:
        raise Refusal(401, error.code, "the client certificate does not count here") from error
    if role is None:
        raise Refusal(403, "other-role", "this certificate names no part that may ask")
    return role


def introspect(request: Request, body: bytes, tokens: TokenVerifier, revocations: Revocations) -> Answer:
    """`{"active": true, …claims}` or `{"active": false}`; raises Refusal."""
    token, audience = _asked(request, body)
    try:
        claims = tokens.verify(token, audience)
    except BadToken:
        # Without a reason (RFC 7662): why a token does not count would tell whoever holds a stolen one what to change.
        return Answer(200, json.encode({"active": False}))
    if revocations.revoked(claims):
        return Answer(200, json.encode({"active": False}))
    return Answer(200, json.encode({"active": True, "token_type": "DPoP", **claims}))


def _asked(request: Request, body: bytes) -> tuple[str, str]:
    kind = request.header(b"content-type").partition(";")[0].strip().lower()
    fields: Any
    try:
        if kind == FORM:
            fields = dict(parse_qsl(body.decode("ascii"), strict_parsing=True, max_num_fields=8))
        else:
            fields = json.decode(body)
    except (JsonError, ValueError) as error:
        raise Refusal(400, "bad-message", "the body is neither a form nor JSON") from error
    if not isinstance(fields, dict):
        raise Refusal(400, "bad-message", "the body is not an object")
    token, audience = fields.get("token"), fields.get("audience", GATE)
    if not isinstance(token, str) or not token or audience not in AUDIENCES:
        raise Refusal(400, "bad-message", f"send `token`, and as `audience` one of {', '.join(AUDIENCES)}")
    return token, audience
