"""Requests of the HTTPS adapter: what is sent, what is repeated, what an answer becomes."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.crypto.secret import SecretText
from fastness.kinds.registry import find
from fastness.kube.client.connection import Connection, Impersonation
from fastness.kube.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    NotFound,
    Timeout,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from fastness.kube.port import DeleteOptions, PatchType, Propagation, Scope, WriteOptions
from fastness.observe import logs
from tests.unit.kube.client.server import URL, Script, listing, status

CONFIG_MAP = find("", "v1", "configmaps").resource
NAMESPACE = find("", "v1", "namespaces").resource
POD = find("", "v1", "pods").resource
OBJECT: dict[str, Any] = {"metadata": {"name": "a", "namespace": "n"}}


def ok() -> httpx.Response:
    """A fresh answer of success."""
    return httpx.Response(200, json=OBJECT)


async def test_a_get_names_the_object_and_asks_for_json() -> None:
    script = Script(ok())
    async with script.cluster() as cluster:
        assert await cluster.get(CONFIG_MAP, "a", "n") == OBJECT
    [request] = script.requests
    assert str(request.url) == f"{URL}/api/v1/namespaces/n/configmaps/a"
    assert request.headers["accept"] == "application/json"


async def test_token_and_impersonation_go_with_every_request() -> None:
    script = Script(ok())
    connection = Connection(URL, token=SecretText("t"), impersonation=Impersonation("bob", ("dev", "ops"), "7"))
    async with script.cluster(connection) as cluster:
        await cluster.get(CONFIG_MAP, "a", "n")
    headers = script.requests[0].headers
    assert headers["authorization"] == "Bearer t"
    assert headers["impersonate-user"] == "bob"
    assert headers.get_list("impersonate-group") == ["dev", "ops"]
    assert headers["impersonate-uid"] == "7"


async def test_the_correlation_id_becomes_the_audit_id() -> None:
    script = Script(ok(), ok())
    async with script.cluster() as cluster:
        await cluster.get(CONFIG_MAP, "a", "n")
        logs.begin_correlation("c-1")
        await cluster.get(CONFIG_MAP, "a", "n")
    assert [request.headers.get("audit-id") for request in script.requests] == [None, "c-1"]


async def test_a_name_of_the_server_certificate_is_passed_on() -> None:
    script = Script(ok())
    async with script.cluster(Connection(URL, server_name="kubernetes")) as cluster:
        await cluster.get(CONFIG_MAP, "a", "n")
    assert script.requests[0].extensions["sni_hostname"] == "kubernetes"


async def test_a_create_carries_manager_and_dry_run() -> None:
    script = Script(ok())
    async with script.cluster() as cluster:
        await cluster.create(CONFIG_MAP, OBJECT, WriteOptions(manager="m", dry_run=True))
    [request] = script.requests
    assert (request.method, request.url.path) == ("POST", "/api/v1/namespaces/n/configmaps")
    assert script.params(0) == {"fieldManager": "m", "dryRun": "All"}
    assert json.loads(request.content) == OBJECT


@pytest.mark.parametrize(
    ("kind", "force", "params"),
    [
        (PatchType.APPLY, True, {"fieldManager": "m", "force": "true"}),
        (PatchType.APPLY, False, {"fieldManager": "m"}),
        (PatchType.MERGE, True, {"fieldManager": "m"}),
    ],
)
async def test_a_patch_carries_its_media_type_and_force_only_for_apply(
    kind: PatchType, force: bool, params: dict[str, str]
) -> None:
    script = Script(ok())
    async with script.cluster() as cluster:
        options = WriteOptions(manager="m", force=force, subresource="status")
        await cluster.patch(CONFIG_MAP, "a", {"x": 1}, kind, "n", options)
    [request] = script.requests
    assert request.headers["content-type"] == kind.value
    assert request.url.path == "/api/v1/namespaces/n/configmaps/a/status"
    assert script.params(0) == params


async def test_a_delete_carries_conditions_and_consequences_in_its_body() -> None:
    script = Script(ok())
    options = DeleteOptions("u", "7", Propagation.FOREGROUND, grace_seconds=0, dry_run=True)
    async with script.cluster() as cluster:
        await cluster.delete(CONFIG_MAP, "a", "n", options)
    assert json.loads(script.requests[0].content) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }


async def test_connect_posts_and_finalize_puts() -> None:
    script = Script(ok(), ok())
    async with script.cluster() as cluster:
        await cluster.connect(POD, "a", "n", "eviction", {})
        await cluster.connect(NAMESPACE, "n", "", "finalize", {})
    sent = [(request.method, request.url.path) for request in script.requests]
    assert sent == [
        ("POST", "/api/v1/namespaces/n/pods/a/eviction"),
        ("PUT", "/api/v1/namespaces/n/finalize"),
    ]


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("", "n"),
        ("..", "n"),
        (".", "n"),
        ("a/b", "n"),
        ("a", "../x"),
        ("a?b", "n"),
        ("a#b", "n"),
        ("a%2f", "n"),
        ("a", ""),
    ],
)
async def test_what_cannot_be_part_of_a_path_is_refused_before_it_is_sent(name: str, namespace: str) -> None:
    script = Script()
    async with script.cluster() as cluster:
        with pytest.raises(BadRequest):
            await cluster.get(CONFIG_MAP, name, namespace)
    assert script.requests == []


async def test_a_list_without_limit_joins_pages_and_fills_in_kinds() -> None:
    script = Script(listing("a", "b", version="7", token="t1", remaining=1), listing("c", version="7"))
    async with script.cluster() as cluster:
        page = await cluster.list(CONFIG_MAP, Scope("n", labels="x=y", fields="metadata.name!=z"))
    assert [item["metadata"]["name"] for item in page.items] == ["a", "b", "c"]
    assert {(item["kind"], item["apiVersion"]) for item in page.items} == {("ConfigMap", "v1")}
    assert (page.resource_version, page.next) == ("7", "")
    selectors = {"labelSelector": "x=y", "fieldSelector": "metadata.name!=z"}
    assert script.params(0) == {**selectors, "limit": "500"}
    assert script.params(1) == {**selectors, "limit": "500", "continue": "t1"}


async def test_a_list_whose_version_expires_between_pages_starts_again_in_one_piece() -> None:
    gone = status(410, "Expired")
    script = Script(listing("a", version="7", token="t1", remaining=1), gone, listing("a", "b", version="9"))
    async with script.cluster() as cluster:
        page = await cluster.list(CONFIG_MAP)
    assert [item["metadata"]["name"] for item in page.items] == ["a", "b"]
    assert page.resource_version == "9"
    assert script.params(2) == {}


async def test_a_page_is_one_request_and_gives_the_next_token() -> None:
    script = Script(listing("a", token="t1", remaining=4))
    async with script.cluster() as cluster:
        page = await cluster.list(CONFIG_MAP, limit=1)
    assert (page.next, page.remaining) == ("t1", 4)


async def test_a_page_with_an_old_token_expires() -> None:
    script = Script(status(410, "Expired"))
    async with script.cluster() as cluster:
        with pytest.raises(Expired):
            await cluster.list(CONFIG_MAP, limit=1, token="old")


async def test_a_list_not_older_than_a_version_says_so() -> None:
    script = Script(listing("a"))
    async with script.cluster() as cluster:
        await cluster.list(CONFIG_MAP, version="5", limit=2)
    assert script.params(0) == {"limit": "2", "resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (status(404, "NotFound", "gone"), NotFound),
        (status(403, "Forbidden"), Forbidden),
        (status(409, "Conflict"), Conflict),
        (httpx.Response(404, text="404 page not found"), NotFound),
        (httpx.Response(418, text="teapot"), InternalError),
        (httpx.Response(400, content=b"\xff\x00"), BadRequest),
        (httpx.Response(403, json=["not", "a", "status"]), Forbidden),
        (httpx.Response(403, json={"reason": 7, "details": "x"}), Forbidden),
        (httpx.Response(302, headers={"location": "https://elsewhere"}), InternalError),
    ],
)
async def test_a_refusal_becomes_its_error_whatever_the_body_is(
    answer: httpx.Response, expected: type[ApiError]
) -> None:
    script = Script(answer)
    async with script.cluster() as cluster:
        with pytest.raises(expected):
            await cluster.get(CONFIG_MAP, "a", "n")
    assert len(script.requests) == 1


async def test_causes_and_details_of_a_refusal_survive() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "bad", "field": "spec.x"}]
    script = Script(status(422, "Invalid", "bad", name="a", kind="ConfigMap", group="g", uid="u", causes=causes))
    async with script.cluster() as cluster:
        with pytest.raises(ApiError) as caught:
            await cluster.create(CONFIG_MAP, OBJECT)
    error = caught.value
    assert (error.name, error.kind, error.group, error.uid) == ("a", "ConfigMap", "g", "u")
    assert [(cause.field, cause.reason, cause.message) for cause in error.causes] == [
        ("spec.x", "FieldValueInvalid", "bad")
    ]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'"text"'])
async def test_an_answer_that_is_no_object_is_the_server_s_fault(content: bytes) -> None:
    async with Script(httpx.Response(200, content=content)).cluster() as cluster:
        with pytest.raises(InternalError):
            await cluster.get(CONFIG_MAP, "a", "n")
    async with Script(httpx.Response(200, content=content)).cluster() as cluster:
        with pytest.raises(InternalError):
            await cluster.list(CONFIG_MAP)


BREAKS: list[Exception] = [
    httpx.ReadError("x"),
    httpx.ReadTimeout("x"),
    httpx.RemoteProtocolError("x"),
    httpx.WriteError("x"),
]


@pytest.mark.parametrize("broken", BREAKS)
async def test_a_read_that_broke_is_repeated_with_growing_pauses(broken: Exception) -> None:
    script = Script(broken, broken, ok())
    async with script.cluster() as cluster:
        await cluster.get(CONFIG_MAP, "a", "n")
    assert script.clock.slept == sorted(set(script.clock.slept))
    assert len(script.clock.slept) == 2


async def test_a_read_gives_up_after_a_few_attempts() -> None:
    script = Script(*[httpx.ReadError("x")] * 4)
    async with script.cluster() as cluster:
        with pytest.raises(Unavailable, match="cannot be reached at "):
            await cluster.get(CONFIG_MAP, "a", "n")
    assert script.answers == []


@pytest.mark.parametrize("broken", BREAKS)
async def test_a_write_that_broke_is_not_repeated_and_its_outcome_is_unknown(broken: Exception) -> None:
    for verb in ("create", "patch", "delete"):
        script = Script(broken)
        async with script.cluster() as cluster:
            calls = {
                "create": lambda c=cluster: c.create(CONFIG_MAP, OBJECT),
                "patch": lambda c=cluster: c.patch(CONFIG_MAP, "a", {}, PatchType.APPLY, "n"),
                "delete": lambda c=cluster: c.delete(CONFIG_MAP, "a", "n"),
            }
            with pytest.raises(Timeout, match="outcome is unknown"):
                await calls[verb]()
        assert len(script.requests) == 1


@pytest.mark.parametrize("unsent", [httpx.ConnectError("x"), httpx.ConnectTimeout("x"), httpx.PoolTimeout("x")])
async def test_a_write_that_never_left_is_repeated(unsent: Exception) -> None:
    script = Script(unsent, unsent, ok())
    async with script.cluster() as cluster:
        await cluster.create(CONFIG_MAP, OBJECT)
    assert len(script.requests) == 3


async def test_a_write_that_could_never_leave_changed_nothing() -> None:
    script = Script(*[httpx.ConnectError("refused")] * 4)
    async with script.cluster() as cluster:
        with pytest.raises(Unavailable, match="refused"):
            await cluster.create(CONFIG_MAP, OBJECT)


async def test_a_certificate_that_is_not_trusted_is_said_at_once() -> None:
    distrust = ssl.SSLCertVerificationError(1, "certificate verify failed")
    distrust.verify_message = "self-signed certificate"
    failure = httpx.ConnectError("x")
    failure.__cause__ = distrust
    script = Script(failure)
    async with script.cluster() as cluster:
        with pytest.raises(Unavailable, match="not trusted: self-signed"):
            await cluster.get(CONFIG_MAP, "a", "n")
    assert script.clock.slept == []


def busy(code: int, seconds: str) -> httpx.Response:
    """A server that asks for patience."""
    return httpx.Response(code, headers={"retry-after": seconds}, json={"kind": "Status", "code": code})


async def test_a_create_waits_as_long_as_an_overloaded_server_asks() -> None:
    script = Script(busy(429, "3"), ok())
    async with script.cluster() as cluster:
        await cluster.create(CONFIG_MAP, OBJECT)
    assert script.clock.slept == [3.0]


async def test_a_create_is_not_repeated_after_503_and_a_delete_is() -> None:
    script = Script(busy(503, "1"))
    async with script.cluster() as cluster:
        with pytest.raises(Unavailable) as caught:
            await cluster.create(CONFIG_MAP, OBJECT)
    assert caught.value.retry_after == 1
    script = Script(busy(503, "1"), ok())
    async with script.cluster() as cluster:
        await cluster.delete(CONFIG_MAP, "a", "n")


async def test_an_eviction_that_a_budget_blocks_is_the_answer() -> None:
    script = Script(busy(429, "1"))
    async with script.cluster() as cluster:
        with pytest.raises(TooManyRequests):
            await cluster.connect(POD, "a", "n", "eviction", {})


async def test_more_patience_than_we_have_is_passed_on() -> None:
    script = Script(busy(429, "3600"))
    async with script.cluster() as cluster:
        with pytest.raises(TooManyRequests) as caught:
            await cluster.get(CONFIG_MAP, "a", "n")
    assert caught.value.retry_after == 3600


async def test_a_refused_token_is_read_again_once() -> None:
    tokens = iter([b"old", b"new"])
    script = Script(status(401, "Unauthorized"), ok())
    connection = Connection(URL, token_file=Path("/token"))
    async with script.cluster(connection, read=lambda _path: next(tokens)) as cluster:
        await cluster.create(CONFIG_MAP, OBJECT)
    assert [request.headers["authorization"] for request in script.requests] == ["Bearer old", "Bearer new"]


async def test_a_token_that_stays_refused_is_unauthorized() -> None:
    tokens = iter([b"old", b"new"])
    script = Script(status(401, "Unauthorized"), status(401, "Unauthorized"))
    connection = Connection(URL, token_file=Path("/token"))
    async with script.cluster(connection, read=lambda _path: next(tokens)) as cluster:
        with pytest.raises(Unauthorized):
            await cluster.get(CONFIG_MAP, "a", "n")


async def test_a_token_that_did_not_change_is_not_tried_again() -> None:
    script = Script(status(401, "Unauthorized"))
    async with script.cluster(Connection(URL, token_file=Path("/t")), read=lambda _path: b"same") as cluster:
        with pytest.raises(Unauthorized):
            await cluster.get(CONFIG_MAP, "a", "n")
