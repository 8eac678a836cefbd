"""Who is logged in: one-time links, sessions, and proofs that a form is ours.

A session holds the credential that somebody logged in with, and shows it to the API's own authenticator for every request: who a
user is, and whether the credential still counts, is decided there and nowhere else. The browser gets a cookie with an id.

* A link is good once and for five minutes. Opening it changes nothing; the form behind it does, so that a browser that looks
  ahead does not use it up.
* The id is new at every login, whatever the browser sent before, and the cookie carries its own expiry under a MAC. A session
  ends at its expiry, at logout, when the credential ends, and when the process does.
* Every form carries a token that only the page can have made for this session; the form of the login one that is tied to a
  cookie of its own, so that nobody can log somebody else in.
* Sessions are bounded: the oldest makes room.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from fastness.crypto.digests import same, sha256
from fastness.crypto.mac import KEY_BYTES, MacKey, MacRing
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock, Entropy

LINK_LIFETIME: Final = timedelta(minutes=5)
LOGIN_LIFETIME: Final = timedelta(minutes=30)
LIFETIME: Final = timedelta(hours=8)
MAX_SESSIONS: Final = 1000
ID_BYTES: Final = 24
_SESSION, _FORM, _LOGIN = "page session", "page form", "page login"


@dataclass(frozen=True, slots=True)
class Credential:
    """What is shown to the authenticator: a certificate, or a bearer token."""

    certificate: bytes | None = None
    token: SecretText = field(default_factory=lambda: SecretText(""))


@dataclass(frozen=True, slots=True)
class Session:
    """One login."""

    id: bytes
    credential: Credential
    expires: datetime


class Sessions:
    """All logins of this process."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        # Of this process and in memory alone: no cookie outlives a restart, and no file holds what could forge one.
        self._ring = MacRing([MacKey(SecretBytes(entropy.token(KEY_BYTES)))])
        self._sessions = BoundedCache[bytes, Session](MAX_SESSIONS)
        self._links: dict[str, tuple[Credential, datetime]] = {}
        # Browsers keep cookies by host and not by port: two clusters on one machine must not share a name.
        self.cookie = f"__Host-fastness-{entropy.token(4).hex()}"
        self.login_cookie = f"{self.cookie}-login"
        self.away_cookie = f"{self.cookie}-away"

    def link(self, credential: Credential) -> str:
        """A key that logs in with this credential, once."""
        key = self._entropy.token(ID_BYTES).hex()
        self._links[_hashed(key)] = (credential, self._clock.now() + LINK_LIFETIME)
        return key

    def link_counts(self, key: str) -> bool:
        """Whether a key would log in now; it stays unused."""
        link = self._links.get(_hashed(key))
        return link is not None and self._clock.now() < link[1]

    def redeem(self, key: str) -> Credential | None:
        """The credential of a key, which is used up by this; None for one that does not count."""
        # Taken out before it is looked at: of two requests with one link the second finds nothing.
        link = self._links.pop(_hashed(key), None)
        return link[0] if link is not None and self._clock.now() < link[1] else None

    def begin(self, credential: Credential) -> tuple[Session, str]:
        """A new session, and the value of its cookie."""
        # Never an id that the browser brought: whoever planted a cookie would share the session (session fixation).
        session = Session(self._entropy.token(ID_BYTES), credential, self._clock.now() + LIFETIME)
        self._sessions.put(session.id, session)
        return session, self._ring.write(_SESSION, _stamped(session.id, session.expires))

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie; None for a foreign, ended or expired one."""
        self._forget_expired()
        marked = self._unstamped(_SESSION, cookie)
        return self._sessions.get(marked) if marked is not None else None

    def _forget_expired(self) -> None:
        """Forget what ended, for good: a clock that is set back later revives nothing."""
        now = self._clock.now()
        for session in [session for session in self._sessions.values() if now >= session.expires]:
            self.end(session)

    def end(self, session: Session) -> None:
        """Forget a session; its cookie counts no more."""
        self._sessions.pop(session.id)

    def form_token(self, session: Session) -> str:
        """What a form of this session carries."""
        return self._ring.write(_FORM, session.id)

    def is_ours(self, session: Session, token: str) -> bool:
        """Whether a form was made for this session."""
        mark = self._ring.read(_FORM, token)
        return mark is not None and same(mark, session.id)

    def before_login(self) -> tuple[str, str]:
        """The cookie and the token of a form that logs in."""
        mark = _stamped(self._entropy.token(ID_BYTES), self._clock.now() + LOGIN_LIFETIME)
        return self._ring.write(_LOGIN, mark), self._ring.write(_FORM, mark)

    def is_our_login(self, cookie: str, token: str) -> bool:
        """Whether a login came from a form that this browser was given."""
        mark, form_mark = self._ring.read(_LOGIN, cookie), self._ring.read(_FORM, token)
        # Cookie and form must be of one page: otherwise another site could log its victim in as the attacker.
        if mark is None or form_mark is None or not same(mark, form_mark):
            return False
        return self._unstamped(_LOGIN, cookie) is not None

    def _unstamped(self, purpose: str, text: str) -> bytes | None:
        payload = self._ring.read(purpose, text)
        if payload is None or len(payload) != ID_BYTES + 8:
            return None
        return payload[:ID_BYTES] if self._clock.now().timestamp() < int.from_bytes(payload[ID_BYTES:]) else None


def _stamped(mark: bytes, expires: datetime) -> bytes:
    return mark + int(expires.timestamp()).to_bytes(8)


def _hashed(key: str) -> str:
    """Keys are looked up by their hash: how long a lookup takes says nothing about a key."""
    return str(sha256(key.encode("utf-8", "replace")))
