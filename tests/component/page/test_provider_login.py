"""People of an identity provider: tokens at the API, the login of the page, and what a forger tries at both.

The provider is a stand-in that signs with another implementation of JOSE. The API is the embedded one, over HTTPS.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.keys import people
from fastness.keys.people import PeopleSettings
from fastness.page.provider_login import AWAY
from fastness.page.server import ProviderOptions
from tests.component.page.served_page import BINDINGS, Browser, ServedPage, served_page
from tests.component.release.broker.brokered_cluster import until
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock
from tests.standins.identity_provider import CLIENT, IdentityProvider, identity_provider

PAGE = "https://page.test"
MACHINES = "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/fastness-system/machines"


@dataclass
class Site:
    """A cluster whose people log in elsewhere."""

    provider: IdentityProvider
    web: ServedPage

    async def whoami(self, token: str) -> tuple[int, dict[str, Any]]:
        """Who the API says that a token is."""
        async with self.web.embedded.client(certificate=False, token=token) as client:
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            answer = await client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=body)
            return answer.status_code, answer.json()["status"]["userInfo"] if answer.is_success else {}

    async def recognised(self, token: Callable[[], str]) -> dict[str, Any]:
        """The same, when the API has heard of the provider's keys."""
        recognised: dict[str, Any] = {}

        async def requests() -> bool:
            recognised.update((await self.whoami(token()))[1])
            return bool(recognised)

        await until(requests)
        return recognised

    async def bind(self, group: str, role: str) -> None:
        """Give a group of the provider a role."""
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        name = f"{role}-of-people"
        await self.web.cluster.create(
            BINDINGS, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        )

    async def sent_away(self, browser: Browser, then: str = "/pools") -> dict[str, str]:
        """What a browser is sent to the provider with."""
        answers: list[httpx.Response] = []

        async def answered() -> bool:
            answers.append(await browser.get("/login/provider", params={"then": then}))
            return answers[-1].status_code != 503

        await until(answered)
        answer = answers[-1]
        assert answer.status_code == 303
        assert answer.headers["location"].startswith(f"{self.provider.url}/authorize?")
        return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}

    def answered(self, query: dict[str, str]) -> str:
        """The way back, as the provider gives it."""
        location = self.provider.authorize(query)
        assert location.startswith(f"{PAGE}/login/callback?")
        return location.removeprefix(PAGE)


@asynccontextmanager
async def made(tmp_path: Path, **claims: Any) -> AsyncIterator[Site]:
    directory, clock = tmp_path / "state", MovedClock()
    with identity_provider(tmp_path) as (provider, bundle):
        settings = PeopleSettings(provider.url, CLIENT, ca=bundle, **claims)
        async with (
            open_apiserver(ServerOptions(directory, people=settings), PRODUCT, clock) as server,
            served_page(Embedded(server, directory), clock, provider=ProviderOptions(settings, PAGE)) as web,
        ):
            yield Site(provider, web)


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setattr(people, "AGAIN_SECONDS", 0.2)
    async with made(tmp_path) as world:
        yield world


async def test_a_group_of_the_provider_has_the_role_that_it_is_bound_to(site: Site) -> None:
    who = await site.recognised(site.provider.token)
    assert who["username"] == "oidc:alice"
    assert set(who["groups"]) == {"oidc:operators", "system:authenticated"}
    token = site.provider.token()
    async with site.web.embedded.client(certificate=False, token=token) as client:
        assert (await client.get(MACHINES)).status_code == 403
        await site.bind("oidc:operators", "view")
        assert (await client.get(MACHINES)).status_code == 200
        stranger = {"authorization": f"Bearer {site.provider.token(groups=['others'])}"}
        assert (await client.get(MACHINES, headers=stranger)).status_code == 403


async def test_no_group_or_name_of_the_system_comes_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "AGAIN_SECONDS", 0.2)
    async with made(tmp_path, username_prefix="", groups_prefix="") as site:
        groups = ["system:masters", "system:nodes", "fastness:internal", "staff"]
        who = await site.recognised(lambda: site.provider.token(groups=groups))
        assert set(who["groups"]) == {"staff", "system:authenticated"}
        for name in ("system:admin", "system:node:worker-1", "fastness:broker"):
            assert (await site.whoami(site.provider.token(sub=name)))[0] == 401


def forged(provider: IdentityProvider, header: dict[str, Any], signature: str = "") -> str:
    """A token that nobody signed."""
    now = int(time.time())
    claims = {"iss": provider.url, "aud": CLIENT, "sub": "alice", "iat": now, "exp": now + 600}
    parts = (json.dumps(header), json.dumps(claims))
    return ".".join([*(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts), signature])


def by_public_key(provider: IdentityProvider) -> str:
    """HS256 with the published key as its secret."""
    key = provider.keys["first"]
    assert isinstance(key, RSAKey)
    pem = key.as_pem(private=False)
    unsigned = forged(provider, {"alg": "HS256", "kid": "first"}).rstrip(".")
    mac = hmac.digest(pem, unsigned.encode(), "sha256")
    return f"{unsigned}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


NOW = int(time.time())
ATTACKS: dict[str, Callable[[IdentityProvider], str]] = {
    "alg none": lambda provider: forged(provider, {"alg": "none", "kid": "first"}),
    "alg none without kid": lambda provider: forged(provider, {"alg": "none"}),
    "no signature": lambda provider: forged(provider, {"alg": "RS256", "kid": "first"}),
    "HS256 with the public key": by_public_key,
    "key of somebody else": lambda provider: provider.token(key=RSAKey.generate_key(2048)),
    "kid unknown": lambda provider: provider.token({"kid": "another"}),
    "key in the header": lambda provider: provider.token({"jku": "https://forger.test/keys"}),
    "RS384": lambda provider: provider.token({"alg": "RS384"}),
    "PS256": lambda provider: provider.token({"alg": "PS256"}),
    "audience": lambda provider: provider.token(aud="another"),
    "no audience": lambda provider: provider.token(aud=None),
    "part of the audience": lambda provider: provider.token(aud=f"{CLIENT}-dev"),
    "several audiences": lambda provider: provider.token(aud=[CLIENT, "another"]),
    "asked for by another": lambda provider: provider.token(aud=[CLIENT, "another"], azp="another"),
    "issuer": lambda provider: provider.token(iss="https://forger.test"),
    "issuer with a slash": lambda provider: provider.token(iss=f"{provider.url}/"),
    "no issuer": lambda provider: provider.token(iss=None),
    "expired": lambda provider: provider.token(iat=NOW - 4000, exp=NOW - 3000),
    "no expiry": lambda provider: provider.token(exp=None),
    "expiry as text": lambda provider: provider.token(exp=str(NOW + 600)),
    "good for a year": lambda provider: provider.token(exp=NOW + 365 * 86400),
    "not yet": lambda provider: provider.token(nbf=NOW + 3000),
    "issued tomorrow": lambda provider: provider.token(iat=NOW + 3000, exp=NOW + 3600),
    "nobody": lambda provider: provider.token(sub=None),
    "empty name": lambda provider: provider.token(sub=""),
    "name with a line": lambda provider: provider.token(sub="alice\nbob"),
    "groups as an object": lambda provider: provider.token(groups={"operators": True}),
    "too many groups": lambda provider: provider.token(groups=[f"g{number}" for number in range(201)]),
}


async def test_no_forged_token_is_anybody(site: Site) -> None:
    await site.recognised(site.provider.token)
    for name, attack in ATTACKS.items():
        assert (await site.whoami(attack(site.provider)))[0] == 401, name
    assert (await site.whoami(site.provider.token()))[0] == 201


async def test_a_new_key_counts_soon_and_an_old_one_no_more(site: Site) -> None:
    await site.recognised(site.provider.token)
    old = site.provider.token()  # never shown before: nobody remembers it
    site.provider.new_key("second", "EC")
    del site.provider.keys["first"]
    assert (await site.recognised(site.provider.token))["username"] == "oidc:alice"
    assert (await site.whoami(old))[0] == 401


async def test_a_provider_that_calls_itself_something_else_is_not_believed(site: Site) -> None:
    await site.recognised(site.provider.token)
    site.provider.calls_itself = "https://forger.test"
    site.provider.new_key("second")
    requests = len(site.provider.paths)
    assert (await site.whoami(site.provider.token()))[0] == 401

    async def asked_again() -> bool:
        return len(site.provider.paths) > requests

    await until(asked_again)
    assert (await site.whoami(site.provider.token()))[0] == 401


async def test_the_page_logs_people_in(site: Site) -> None:
    await site.recognised(site.provider.token)
    await site.bind("oidc:operators", "cluster-admin")
    browser = site.web.browser()
    assert 'href="/login/provider?then=' in (await browser.get("/login")).text
    query = await site.sent_away(browser, "/pools")
    assert (query["response_type"], query["code_challenge_method"], query["client_id"]) == ("code", "S256", CLIENT)
    back = await browser.get(site.answered(query))
    assert (back.status_code, back.headers["refresh"]) == (200, "0;url=/pools")
    session = next(
        line for line in back.headers.get_list("set-cookie") if line.startswith(f"{site.web.page.sessions.cookie}=")
    )
    assert "SameSite=Strict" in session
    page = await browser.get("/pools")
    assert page.status_code == 200
    assert "oidc:alice" in page.text


async def refused(browser: Browser, path: str) -> httpx.Response:
    """The way back does not log in."""
    answer = await browser.get(path)
    assert answer.status_code in (401, 403), answer.text
    assert (await browser.get("/")).status_code == 303
    return answer


async def test_a_way_back_is_good_once_in_one_browser_and_for_ten_minutes(site: Site) -> None:
    await site.recognised(site.provider.token)
    victim, attacker = site.web.browser(), site.web.browser()
    way = site.answered(await site.sent_away(attacker))
    await refused(victim, way)  # logged in as the attacker: login CSRF
    await refused(attacker, way)  # and it is used up
    late = site.answered(await site.sent_away(attacker))
    site.web.clock.ahead += AWAY
    await refused(attacker, late)
    site.web.clock.ahead -= AWAY
    await refused(attacker, "/login/callback?code=x&state=")
    await refused(attacker, "/login/callback?code=x&state=guessed")
    query = await site.sent_away(attacker)
    await refused(attacker, f"/login/callback?error=access_denied&state={query['state']}")
    query = await site.sent_away(attacker)
    await refused(attacker, f"/login/callback?code={'x' * 32}&state={query['state']}")
    query = await site.sent_away(attacker)
    await refused(attacker, f"/login/callback?code=x&state={query['state']}&iss=https://forger.test")


@pytest.mark.parametrize(
    "changed", [{"nonce": "of-another-login"}, {"nonce": None}, {"aud": "another"}, {"exp": NOW - 3600}]
)
async def test_a_token_for_another_question_does_not_log_in(site: Site, changed: dict[str, Any]) -> None:
    await site.recognised(site.provider.token)
    browser = site.web.browser()
    query = await site.sent_away(browser)
    site.provider.changed = changed
    await refused(browser, site.answered(query))


@pytest.mark.parametrize(
    "then",
    ["https://forger.test/", "//forger.test", "/\\forger.test", "/login/callback", "javascript:alert(1)", "/%2f/x"],
)
async def test_a_login_leads_to_this_page_alone(site: Site, then: str) -> None:
    await site.recognised(site.provider.token)
    browser = site.web.browser()
    back = await browser.get(site.answered(await site.sent_away(browser, then)))
    assert (back.status_code, back.headers["refresh"]) == (200, "0;url=/")


async def test_without_a_provider_there_is_no_such_way(web: ServedPage) -> None:
    assert (await web.browser().get("/login/provider")).status_code == 404
    assert (await web.browser().get("/login/callback?code=x&state=y")).status_code == 404
