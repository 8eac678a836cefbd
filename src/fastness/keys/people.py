"""People who log in at an identity provider (OpenID Connect): whose token it is, and what of it counts here.

    PeopleSettings     which issuer, which client, which claims; the names of kube-apiserver's flags
    person_of(claims)  the user that a verified token names, or NotOurPerson with the reason
    IssuerFollower     the issuer's keys, fetched with bounds, kept, and fetched again when one is not known

* Issuer and audience are compared exactly. A token for several audiences must say that ours asked for it (`azp`).
* `exp` and `iat` must be there; clocks may differ by half a minute. A token that is good for more than a day is refused.
* **Nobody outside says who the system is**: a name that begins with `system:` or `fastness:` is refused, and such groups are
  dropped, with whatever prefix a careless setting leaves out.
* An address that its provider did not verify is nobody's name.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from fastness.crypto.errors import BadKey
from fastness.crypto.issuer_keys import IssuerKeys, UnknownKey
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.keys.errors import IssuerUnreachable, NotOurPerson
from fastness.observe import logs
from fastness.runtime.clock import Clock

SKEW: Final = timedelta(seconds=30)
LONGEST: Final = timedelta(hours=24)
MOST_GROUPS: Final = 200
MOST_TEXT: Final = 512
MAX_DOCUMENT: Final = 256 * 1024
FETCH_SECONDS: Final = 10.0
REFRESH_SECONDS: Final = 600.0
# A stranger can send tokens with made-up key ids: they must not decide how often the issuer is asked.
AGAIN_SECONDS: Final = 10.0
RESERVED: Final = ("system:", "fastness:")
_DISCOVERY: Final = "/.well-known/openid-configuration"
_log = logs.logger("people")


@dataclass(frozen=True, slots=True)
class PeopleSettings:
    """Who says who people are; prefixes keep their names apart from those of certificates and service accounts."""

    issuer: str
    client: str
    username_claim: str = "sub"
    username_prefix: str = "oidc:"
    groups_claim: str = "groups"
    groups_prefix: str = "oidc:"
    ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a good token names, and from when to when."""

    name: str
    groups: tuple[str, ...]
    since: datetime
    until: datetime
    nonce: str = ""


def require_settings(settings: PeopleSettings) -> None:
    """Refuse settings that could never work, or trust too much; raises IssuerUnreachable."""
    parts = urlsplit(settings.issuer)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise IssuerUnreachable(
            f"{settings.issuer!r} is not the address of an issuer",
            "Give the https URL that the provider's tokens carry as `iss`, without query and fragment.",
        )
    if not settings.client or not settings.username_claim:
        raise IssuerUnreachable("a client id and a claim for names are needed", "Give --oidc-client-id.")


def person_of(claims: Mapping[str, Any], settings: PeopleSettings, now: datetime) -> Person:
    """The person whom verified claims name; raises NotOurPerson."""
    if claims.get("iss") != settings.issuer:
        raise _not_ours("the token is of another issuer")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or settings.client not in audiences:
        raise _not_ours("the token is for another client")
    # OpenID Connect Core §3.1.3.7: with more audiences than one it must say who asked for it.
    if claims.get("azp", settings.client) != settings.client or (len(audiences) > 1 and "azp" not in claims):
        raise _not_ours("another client asked for the token")
    since, until = _lifetime(claims, now)
    name = _text(claims.get(settings.username_claim))
    if not name:
        raise _not_ours(f"the token has no {settings.username_claim}")
    if settings.username_claim == "email" and claims.get("email_verified", True) is not True:
        raise _not_ours("the issuer has not verified that address")
    name = settings.username_prefix + name
    if name.startswith(RESERVED):
        raise _not_ours("the token names a part of the system")
    nonce = claims.get("nonce")
    return Person(name, _groups(claims, settings), since, until, nonce if isinstance(nonce, str) else "")


def _lifetime(claims: Mapping[str, Any], now: datetime) -> tuple[datetime, datetime]:
    issued, until = _moment(claims, "iat"), _moment(claims, "exp")
    since = max(issued, _moment(claims, "nbf")) if "nbf" in claims else issued
    if until - issued > LONGEST:
        raise _not_ours("the token is good for longer than a day")
    if now >= until + SKEW or now < since - SKEW:
        raise _not_ours("the token is not good now")
    return since - SKEW, until + SKEW


def _moment(claims: Mapping[str, Any], name: str) -> datetime:
    value = claims.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 253_402_300_799:
        raise _not_ours(f"the token has no usable {name}")
    return datetime.fromtimestamp(value, UTC)


def _groups(claims: Mapping[str, Any], settings: PeopleSettings) -> tuple[str, ...]:
    value = claims.get(settings.groups_claim) if settings.groups_claim else None
    entries = [value] if isinstance(value, str) else value
    if entries is None:
        return ()
    if not isinstance(entries, list) or len(entries) > MOST_GROUPS:
        raise _not_ours(f"{settings.groups_claim} is no list of at most {MOST_GROUPS} groups")
    named = (settings.groups_prefix + text for entry in entries if (text := _text(entry)))
    return tuple(dict.fromkeys(group for group in named if not group.startswith(RESERVED)))


def _text(value: Any) -> str:
    """A name that can stand in a log and a rule; empty for everything else."""
    good = isinstance(value, str) and 0 < len(value) <= MOST_TEXT and value.isprintable() and value == value.strip()
    return str(value) if good else ""


class IssuerFollower:
    """The endpoints and keys of an issuer, as they were last published; nothing before the first answer."""

    def __init__(self, settings: PeopleSettings, clock: Clock) -> None:
        require_settings(settings)
        self.settings = settings
        self._clock = clock
        self._keys: IssuerKeys | None = None
        self.endpoints: Mapping[str, str] = {}
        self.generation = 0
        self._published: Mapping[str, Any] = {}
        self._wanted = asyncio.Event()

    def verify(self, token: str, now: datetime) -> Person:
        """Whom a token names; raises BadSignature, NotOurPerson. A key that is not known is asked for, for the next time."""
        if self._keys is None:
            self._wanted.set()
            raise _not_ours("the issuer has not answered yet")
        try:
            claims = self._keys.verify(token)
        except UnknownKey:
            self._wanted.set()
            raise
        return person_of(claims, self.settings, now)

    async def follow(self) -> None:
        """Fetch, for ever; what fails is tried again, and the keys of before count on."""
        while True:
            pause = REFRESH_SECONDS
            try:
                await self.fetch()
            except IssuerUnreachable as error:
                _log.warning("people.unreachable", issuer=self.settings.issuer, error=error)
                pause = AGAIN_SECONDS
            self._wanted.clear()
            await self._clock.sleep(AGAIN_SECONDS)
            waiting = asyncio.create_task(self._wanted.wait())
            sleeping = asyncio.create_task(self._clock.sleep(max(0.0, pause - AGAIN_SECONDS)))
            try:
                await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
                sleeping.cancel()

    async def fetch(self) -> None:
        """Fetch once; raises IssuerUnreachable."""
        async with self.client() as client:
            described = await document(client, self.settings.issuer.rstrip("/") + _DISCOVERY)
            # Discovery §4.3: otherwise one host could answer for another's tokens.
            if described.get("issuer") != self.settings.issuer:
                raise IssuerUnreachable(
                    "the issuer calls itself something else", "Give its name exactly as it says it."
                )
            endpoints = {name: described.get(name) for name in ("jwks_uri", "authorization_endpoint", "token_endpoint")}
            for name, url in endpoints.items():
                if not isinstance(url, str) or not url.startswith("https://"):
                    raise IssuerUnreachable(f"the issuer has no {name} over https", "Ask whoever runs the provider.")
            published = await document(client, str(endpoints["jwks_uri"]))
            try:
                self._keys = IssuerKeys.from_jwks(published)
            except BadKey as error:
                raise IssuerUnreachable(str(error), "Ask whoever runs the provider.") from error
            if published != self._published:
                self._published, self.generation = published, self.generation + 1
            self.endpoints = {name: str(url) for name, url in endpoints.items()}

    def client(self) -> httpx.AsyncClient:
        """A client that believes the authorities of the settings alone, follows nothing and waits for nobody."""
        try:
            trust = ssl.create_default_context(cafile=str(self.settings.ca) if self.settings.ca else None)
        except (OSError, ssl.SSLError) as error:
            raise IssuerUnreachable(f"{self.settings.ca} cannot be read: {error}", "Give the CA as PEM.") from error
        return httpx.AsyncClient(verify=trust, timeout=FETCH_SECONDS, follow_redirects=False, trust_env=False)


async def document(
    client: httpx.AsyncClient, url: str, form: Mapping[str, str] | None = None, auth: tuple[str, str] | None = None
) -> Mapping[str, Any]:
    """A JSON object of an issuer, within bounds; with a form it is posted. Raises IssuerUnreachable."""
    method = "GET" if form is None else "POST"
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    try:
        async with (
            asyncio.timeout(2 * FETCH_SECONDS),
            client.stream(method, url, data=dict(form) if form else None, headers=headers, auth=auth) as answer,
        ):
            body = bytearray()
            async for chunk in answer.aiter_raw():
                body += chunk
                if len(body) > MAX_DOCUMENT:
                    raise IssuerUnreachable("the issuer's answer is too long", "Ask whoever runs the provider.")
            if answer.status_code != 200:
                raise IssuerUnreachable(f"the issuer answered {answer.status_code}", "Look at the provider's own log.")
        value = json.decode(bytes(body))
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, FormatError, OSError) as error:
        raise IssuerUnreachable(f"the issuer cannot be asked: {error}", "Check address, network and CA.") from error
    if not isinstance(value, dict):
        raise IssuerUnreachable("the issuer's answer is no object", "Ask whoever runs the provider.")
    return value


def _not_ours(message: str) -> NotOurPerson:
    return NotOurPerson(
        message, "Log in again; if that does not help, compare issuer, client and claims with the settings."
    )
