"""The handshake of the key broker without I/O: messages and cookies in, messages and cookies out.

    auth     request            → challenge, cookie C        C = nonce, tee, expiry, audience
    attest   C, attestation     → attempt for the verifier
             judgement          → session cookie S           S = what was proved, the key of the TEE, the token, expiry
    resource S                  → session

A cookie is text that only a door of this cluster can have written (`crypto.mac`), so nothing is kept between the steps and any
replica answers any of them. Rules:

* A challenge names the audience and lives a minute. It is spent by the verifier, once, when the evidence has verified.
* S is of another purpose than C: neither passes for the other, and S cannot ask for a token.
* A session ends with its token. It opens nothing by itself: answers are sealed to the key that the evidence was bound to.
* What a session holds is what the token says, word for word, so that a policy judges the same on every replica.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from fastness.crypto.digests import same
from fastness.crypto.entropy import RandomBytes
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.protocol.kbs import TEES, VERSIONS, KbsAttestation, KbsRequest

COOKIE: Final = "kbs-session-id"
COOKIE_PATH: Final = "/kbs/v0"
# Nobody can wait for a number to come again, nor collect quotes for numbers in advance.
NONCE_BYTES: Final = 32
# Servers and proxies bound the head of a request; beyond this a guest would fail somewhere that explains nothing.
MAX_COOKIE: Final = 12 * 1024
_CHALLENGE: Final = "kbs-challenge"
_SESSION: Final = "kbs-session"


class Macs(Protocol):
    """Writes and reads texts of ours; `crypto.mac.MacRing` is one."""

    def write(self, purpose: str, payload: bytes) -> str:
        """A text of ours."""

    def read(self, purpose: str, text: str) -> bytes | None:
        """Its payload, or None when we did not write it for that purpose."""


class HandshakeError(Exception):
    """A step that cannot be taken; `fresh` says that a new handshake may help."""

    def __init__(self, code: str, detail: str, *, fresh: bool) -> None:
        super().__init__(detail)
        self.code, self.detail, self.fresh = code, detail, fresh


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a machine must bind its evidence to, and for whom."""

    nonce: str
    tee: str
    audience: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A machine that proved itself: the claims of its token, until they end."""

    claims: JsonObject
    expires: datetime


@dataclass(frozen=True, slots=True)
class Handshake:
    """One side of the protocol: the broker's."""

    macs: Macs
    audience: str
    # Long enough for a TPM that takes seconds for a quote; short, because evidence is fresh only as an answer to this
    # (pitfall 14).
    challenge_lifetime: timedelta = timedelta(seconds=60)
    accepted: Collection[str] = TEES

    def begin(self, request: KbsRequest, now: datetime, entropy: RandomBytes) -> tuple[Challenge, str]:
        """A challenge and the cookie that carries it; raises HandshakeError."""
        if request.version not in VERSIONS:
            raise HandshakeError("unsupported-version", f"spoken here: {', '.join(VERSIONS)}", fresh=False)
        # Before any evidence is made: a guest learns here that its kind is not wanted, and the verifier never sees what was
        # switched off.
        if request.tee not in self.accepted:
            spoken = ", ".join(sorted(self.accepted)) or "none"
            raise HandshakeError(
                "unsupported-tee", f"evidence of {request.tee} cannot be verified here; accepted: {spoken}", fresh=False
            )
        # Standard base64 with padding, as guests expect: they hash the text as it is and never decode it.
        nonce = base64.b64encode(entropy.token(NONCE_BYTES)).decode()
        expires = datetime.fromtimestamp(int((now + self.challenge_lifetime).timestamp()), UTC)
        # The kind of evidence is fixed with the number: what was promised as one kind cannot be answered as another (pitfall 27).
        payload = {"n": nonce, "t": request.tee, "a": self.audience, "e": int(expires.timestamp())}
        return Challenge(nonce, request.tee, self.audience, expires), self.macs.write(_CHALLENGE, json.encode(payload))

    def challenged(self, cookie: str, now: datetime) -> Challenge:
        """The challenge that a cookie holds; raises HandshakeError. Asked before anything of the evidence is read."""
        payload = self._payload(_CHALLENGE, cookie)
        if payload is None:
            raise HandshakeError("no-challenge", "ask for a challenge first", fresh=True)
        challenge = Challenge(payload["n"], payload["t"], payload["a"], datetime.fromtimestamp(payload["e"], UTC))
        if now >= challenge.expires:
            raise HandshakeError("challenge-expired", "the challenge has expired: ask for a new one", fresh=True)
        # One MAC ring for all doors: a challenge of another door, perhaps with weaker demands, must not be answered here.
        if not same(challenge.audience, self.audience):
            raise HandshakeError("other-audience", "the challenge was made for another door", fresh=True)
        return challenge

    def answered(self, cookie: str, attestation: KbsAttestation, now: datetime) -> Challenge:
        """The challenge that an attestation answers; raises HandshakeError."""
        challenge = self.challenged(cookie, now)
        # The cookie has the nonce that we made, the body the one that the evidence is bound to: only equal ones answer.
        if not same(challenge.nonce, attestation.nonce):
            raise HandshakeError("other-nonce", "the evidence answers another challenge", fresh=True)
        return challenge

    def opened(self, claims: Mapping[str, Any], expires: datetime) -> str:
        """The cookie of a session with these claims; raises HandshakeError when they do not fit."""
        # Compressed because cookies are short, and safe because nothing secret is in it: CRIME needs a secret beside chosen text.
        packed = zlib.compress(json.encode(claims), 6)
        cookie = self.macs.write(_SESSION, int(expires.timestamp()).to_bytes(8, "big") + packed)
        if len(cookie) > MAX_COOKIE:
            raise HandshakeError("claims-too-long", "the claims are too long: send less init-data", fresh=False)
        return cookie

    def session(self, cookie: str, now: datetime) -> Session:
        """The session of a cookie; raises HandshakeError."""
        payload = self.macs.read(_SESSION, cookie) if cookie and len(cookie) <= MAX_COOKIE else None
        if payload is None:
            raise HandshakeError("no-session", "attest first", fresh=True)
        # Our own time, inside of the tag: `Max-Age` is a wish to whoever keeps the cookie.
        expires = datetime.fromtimestamp(int.from_bytes(payload[:8], "big"), UTC)
        if now >= expires:
            raise HandshakeError("session-expired", "the session has expired: attest again", fresh=True)
        claims = json.decode(zlib.decompress(payload[8:]))  # ours: the tag was checked
        return Session(claims, expires)

    def _payload(self, purpose: str, cookie: str) -> JsonObject | None:
        raw = self.macs.read(purpose, cookie) if cookie and len(cookie) <= MAX_COOKIE else None
        return json.decode(raw) if raw is not None else None


def set_cookie(value: str, expires: datetime, now: datetime) -> str:
    """The Set-Cookie header of a cookie that only this protocol, over TLS, sends back."""
    age = max(0, int((expires - now).total_seconds()))
    return (
        f"{COOKIE}={value}; Path={COOKIE_PATH}; Max-Age={age}; "
        # Path and Strict keep it from other services of the host, and from pages that somebody opens beside a guest's client.
        f"Expires={expires.astimezone(UTC):%a, %d %b %Y %H:%M:%S GMT}; HttpOnly; Secure; SameSite=Strict"
    )


def cookie_in(headers: Collection[str]) -> str:
    """The one session cookie in Cookie headers; empty when there is none; raises HandshakeError for more than one."""
    cookies = [
        value.strip().strip('"')
        for header in headers
        for name, separator, value in (part.partition("=") for part in header.split(";"))
        if separator and name.strip() == COOKIE
    ]
    # RFC 6265 §4.2.2 leaves the order of two cookies open, so which one counts would be up to whoever adds the second.
    if len(set(cookies)) > 1:
        raise HandshakeError("two-cookies", f"{COOKIE} came with two values", fresh=False)
    return cookies[0] if cookies else ""
