"""Logging in at an identity provider: authorization code flow with PKCE, state and nonce (OpenID Connect Core §3.1, RFC 7636).

    GET /login/provider    away to the provider, with a state that is good once and for ten minutes, in this browser alone
    GET /login/callback    back from it: the code becomes a token, the token a session, as if it had been pasted into the form

* What the browser brings back is worth nothing without the cookie that it was sent away with: nobody can be logged in as another.
* A state is used up when it comes back, whatever comes of it; the nonce ties the token to it, the verifier the code.
* The token counts if its issuer signed it for us, **and** the API knows it: who somebody is, and what they may, is decided there.
* Where a login leads afterwards is one of our own views; the address that the provider sends people to is in the settings, and
  never taken from a request.
* The session's cookie is SameSite=Strict, and a browser that comes from another site does not send it on: so the answer is a page
  of ours that goes on by itself.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from fastness.crypto.digests import same, sha256
from fastness.crypto.errors import CryptoError
from fastness.crypto.secret import SecretText
from fastness.keys.errors import IssuerUnreachable, NotOurPerson
from fastness.keys.people import IssuerFollower, document
from fastness.page.routes import after_login
from fastness.page.sessions import ID_BYTES, Credential
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock, Entropy

AWAY: Final = timedelta(minutes=10)
MOST_AWAY: Final = 1000
CALLBACK: Final = "/login/callback"
SCOPES: Final = "openid profile email groups"
MAX_CODE: Final = 4096


class NotLoggedIn(Exception):
    """A login that did not come to its end; the text is for the person."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider, what we are called there, and where people come back to."""

    issuer: IssuerFollower
    page_url: str
    secret: SecretText
    scopes: str = SCOPES

    @property
    def callback(self) -> str:
        """Where the provider sends people."""
        return self.page_url.rstrip("/") + CALLBACK


@dataclass(frozen=True, slots=True)
class _Away:
    browser: str
    nonce: str
    verifier: SecretText
    then: str
    expires: datetime


class ProviderLogins:
    """Logins that are under way."""

    def __init__(self, provider: Provider, clock: Clock, entropy: Entropy) -> None:
        self._provider = provider
        self._clock = clock
        self._entropy = entropy
        self._away = BoundedCache[str, _Away](MOST_AWAY)

    def leave(self, then: str) -> tuple[str, str]:
        """Where to send a browser, and the value of the cookie that it takes along; raises NotLoggedIn."""
        issuer = self._provider.issuer
        endpoint = issuer.endpoints.get("authorization_endpoint")
        if endpoint is None:
            raise NotLoggedIn("The identity provider does not answer. Try again in a moment, or log in with a token.")
        state, nonce, verifier, browser = (self._entropy.token(ID_BYTES + 8).hex() for _ in range(4))
        expires = self._clock.now() + AWAY
        self._away.put(_hashed(state), _Away(_hashed(browser), nonce, SecretText(verifier), after_login(then), expires))
        query = {
            "response_type": "code", "client_id": issuer.settings.client, "redirect_uri": self._provider.callback,
            "scope": self._provider.scopes, "state": state, "nonce": nonce, "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }  # fmt: skip
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", browser

    async def return_with(self, query: dict[str, str], browser: str) -> tuple[Credential, str]:
        """The credential of whoever comes back, and where to go on; raises NotLoggedIn."""
        # Taken out before anything is looked at: a state that comes twice finds nothing.
        away = self._away.pop(_hashed(query.get("state", "")))
        if (
            away is None
            or self._clock.now() >= away.expires
            or not same(_hashed(browser).encode(), away.browser.encode())
        ):
            raise NotLoggedIn("This login was not begun here, or took too long. Please try again.")
        # RFC 9207: an answer of another provider must not be taken to this one.
        if query.get("iss", self._provider.issuer.settings.issuer) != self._provider.issuer.settings.issuer:
            raise NotLoggedIn("The answer is of another identity provider.")
        code = query.get("code", "")
        if "error" in query or not code or len(code) > MAX_CODE:
            raise NotLoggedIn("The identity provider did not log you in.")
        return await self._credential(code, away), away.then

    async def _credential(self, code: str, away: _Away) -> Credential:
        issuer = self._provider.issuer
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self._provider.callback,
            "client_id": issuer.settings.client, "code_verifier": away.verifier.reveal(),
        }  # fmt: skip
        secret = self._provider.secret.reveal()
        try:
            async with issuer.client() as client:
                auth = (issuer.settings.client, secret) if secret else None
                answer = await document(client, issuer.endpoints["token_endpoint"], form, auth)
            token = answer.get("id_token")
            if not isinstance(token, str):
                raise NotLoggedIn("The identity provider gave no token.")
            person = issuer.verify(token, self._clock.now())
        except (IssuerUnreachable, NotOurPerson, CryptoError) as error:
            raise NotLoggedIn("The identity provider's answer does not log in here.") from error
        if not same(person.nonce.encode(), away.nonce.encode()):
            raise NotLoggedIn("The identity provider's answer is to another question.")
        return Credential(token=SecretText(token))


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(sha256(verifier.encode()).value).decode().rstrip("=")


def _hashed(text: str) -> str:
    return str(sha256(text.encode("utf-8", "replace")))
