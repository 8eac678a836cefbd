"""Requests that play tricks: with paths, queries, headers, framing and methods."""

from __future__ import annotations

import json

import pytest

from tests.component.apiserver.door.raw import CONFIGMAPS, HOST, Reply, connect, exchange, get, post, read_reply
from tests.embedded.fixtures import Embedded

CONFIGMAP = b'{"metadata":{"name":"c"}}'

TRICKS = {
    "dots": "/api/v1/namespaces/../secrets",
    "encoded-dots": "/api/v1/namespaces/%2e%2e/secrets",
    "mixed-dots": "/api/v1/namespaces/.%2E/secrets",
    "double-slash": "/api//v1/secrets",
    "leading-double-slash": "//api/v1/secrets",
    "nul": "/api/v1/namespaces/default%00/pods",
    "newline": "/api/v1/namespaces/default%0a/pods",
    "encoded-slash": "/api/v1/namespaces/default%2fpods",
    "double-encoding": "/api/v1/namespaces/%252e%252e/pods",
    "backslash": "/api/v1/namespaces/default%5c..%5cpods",
    "overlong-utf8": "/api/v1/namespaces/%c0%ae%c0%ae/pods",
    "half-escape": "/api/v1/namespaces/default%2/pods",
    "right-to-left": "/api/v1/namespaces/%e2%80%aedefault/pods",
    "very-long": "/api/v1/namespaces/" + "a" * 5000 + "/pods",
    "very-deep": "/api/v1" + "/a" * 2000,
    "matrix-parameter": "/api/v1/namespaces/default;v=1/pods/x",
    "unicode-name": "/api/v1/namespaces/default/pods/%e2%98%83",
}


async def test_path_tricks_find_nothing(calm: Embedded) -> None:
    for name, path in TRICKS.items():
        reply = await exchange(calm, get(path))
        assert (name, reply.code, json.loads(reply.body or b"{}").get("reason")) == (name, 404, "NotFound")


async def test_targets_that_are_no_path_are_refused(calm: Embedded) -> None:
    for target in ("*", "no-slash", "/caf\xe9", "/a b", "http://[::1/x", "/\x01"):
        data = b"GET " + target.encode("latin-1") + b" HTTP/1.1\r\n" + HOST + b"\r\n"
        assert (target, (await exchange(calm, data)).code) in ((target, 400), (target, 404))


async def test_an_absolute_target_is_read_as_its_path(calm: Embedded) -> None:
    assert (await exchange(calm, get("https://elsewhere.invalid/version"))).code == 200


QUERIES = {
    "huge-label-selector": "labelSelector=" + ",".join(f"k{number}%3Dv" for number in range(6000)),
    "nested-selector": "labelSelector=" + "(" * 20_000,
    "huge-field-selector": "fieldSelector=" + ",".join(["metadata.name%3Da"] * 3000),
    "many-parameters": "&".join(f"p{number}=1" for number in range(7000)),
    "bad-utf8": "labelSelector=%ff%fe",
    "bad-limit": "limit=ten",
    "endless-limit": "limit=" + "9" * 5000,
    "unicode-limit": "limit=%c2%b2",
    "endless-timeout": "watch=1&timeoutSeconds=" + "9" * 400,
    "negative-timeout": "watch=1&timeoutSeconds=-5",
    "bad-version": "resourceVersion=yesterday",
    "bad-continue": "continue=%00%00",
    "huge-continue": "continue=" + "A" * 30_000,
    "bad-match": "resourceVersionMatch=Maybe&resourceVersion=1",
}


async def test_queries_beyond_reason_are_refused(calm: Embedded) -> None:
    for name, query in QUERIES.items():
        reply = await exchange(calm, get(f"{CONFIGMAPS}?{query}"))
        assert (name, reply.code) in ((name, 400), (name, 422)), reply.body[:300]
        assert len(reply.body) < 20_000


async def test_a_long_set_is_only_long(calm: Embedded) -> None:
    query = "labelSelector=k+in+(" + ",".join(["v"] * 20_000) + ")"
    assert (await exchange(calm, get(f"{CONFIGMAPS}?{query}"))).code == 200


async def test_a_version_from_the_future_asks_to_wait(calm: Embedded) -> None:
    reply = await exchange(calm, get(f"{CONFIGMAPS}?watch=1&resourceVersion=999999999"))
    assert reply.code == 504


async def test_a_head_beyond_the_bound_is_431(calm: Embedded) -> None:
    heads = {
        "long-header": get("/version", b"x-long: " + b"a" * 70_000),
        "many-headers": get("/version", *[b"x-%d: %b" % (number, b"a" * 100) for number in range(1000)]),
        "long-query": get("/version?" + "a" * 70_000),
    }
    for name, data in heads.items():
        assert (name, (await exchange(calm, data, certificate=False)).code) == (name, 431)


async def test_a_head_that_never_ends_is_cut_at_the_bound(calm: Embedded) -> None:
    reader, writer = await connect(calm, certificate=False)
    writer.write(b"GET /version HTTP/1.1\r\n")
    for number in range(10_000):
        if writer.is_closing() or reader.at_eof():
            break
        try:
            writer.write(b"x-%d: y\r\n" % number)
            await writer.drain()
        except ConnectionError:
            break
    assert (await read_reply(reader)).code == 431
    writer.transport.abort()


SMUGGLED = {
    "length-and-chunked": b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two-lengths": b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "negative-length": b"content-length: -1\r\n\r\n",
    "plus-length": b"content-length: +5\r\n\r\nhello",
    "hex-length": b"content-length: 0x5\r\n\r\nhello",
    "huge-length": b"content-length: 99999999999999999999999\r\n\r\n",
    "folded-length": b"content-length:\r\n 5\r\n\r\nhello",
    "bad-chunk-size": b"transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "chunk-too-short": b"transfer-encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
    "chunk-size-overflow": b"transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "unknown-coding": b"transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "space-before-colon": b"content-length : 5\r\n\r\nhello",
    "bare-line-feed": b"x: y\ncontent-length: 0\n\n",
    "nul-in-header": b"x: a\x00b\r\n\r\n",
}


async def test_ambiguous_framing_ends_the_connection(calm: Embedded) -> None:
    for name, rest in SMUGGLED.items():
        reader, writer = await connect(calm)
        writer.write(b"POST " + CONFIGMAPS.encode() + b" HTTP/1.1\r\n" + HOST + rest + get("/version"))
        codes = [(await read_reply(reader)).code for _ in range(2)]
        assert (name, codes) == (name, [400, 0])
        writer.transport.abort()


async def test_pipelined_requests_are_answered_in_order(calm: Embedded) -> None:
    reader, writer = await connect(calm)
    writer.write(get("/version") + post(CONFIGMAPS, CONFIGMAP) + get(f"{CONFIGMAPS}/c") + get("/nothing"))
    replies = [await read_reply(reader) for _ in range(4)]
    assert [reply.code for reply in replies] == [200, 201, 200, 404]
    assert json.loads(replies[2].body) == json.loads(replies[1].body)
    writer.transport.abort()


async def test_a_thousand_pipelined_requests_are_answered(calm: Embedded) -> None:
    reader, writer = await connect(calm, certificate=False)
    writer.write(get("/livez") * 1000)
    for _ in range(1000):
        assert (await read_reply(reader)).code == 200
    writer.transport.abort()


async def test_http_1_0_is_answered_and_closed(calm: Embedded) -> None:
    reader, writer = await connect(calm, certificate=False)
    writer.write(b"GET /version HTTP/1.0\r\n\r\n")
    assert (await read_reply(reader)).code == 200
    assert await reader.read() == b""
    writer.transport.abort()


async def test_other_versions_are_refused(calm: Embedded) -> None:
    for version in (b"HTTP/3.0", b"HTTP/2.1", b"HTTP/1.10", b"SPDY/1"):
        reply = await exchange(calm, b"GET /version " + version + b"\r\n" + HOST + b"\r\n")
        assert (version, reply.code) == (version, 400)
    assert (await exchange(calm, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).code in (0, 400)


async def test_methods_without_a_verb_are_refused(calm: Embedded) -> None:
    expected = {"OPTIONS": 405, "TRACE": 405, "PROPFIND": 405, "PURGE": 405, "SEARCH": 405}
    expected |= {"FOO": 400, "get": 400, "G\x00T": 400, "CONNECT": 405, "A" * 5000: 400}
    for method, code in expected.items():
        data = method.encode() + b" " + CONFIGMAPS.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\n"
        assert (method, (await exchange(calm, data)).code) == (method, code)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/readyz", "GET, HEAD"),
        ("PUT", "/apis/apps", "GET, HEAD"),
        ("OPTIONS", CONFIGMAPS, "GET, HEAD, POST, PUT, PATCH, DELETE"),
        ("PUT", CONFIGMAPS, "GET, HEAD, POST, DELETE"),
        ("POST", "/api/v1/configmaps", "GET, HEAD"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "POST"),
        ("DELETE", "/api/v1/namespaces/default/status", "GET, HEAD, PUT, PATCH"),
        ("POST", "/apis/project.openshift.io/v1/projects", "GET, HEAD"),
    ],
)
async def test_a_refused_method_comes_with_those_that_there_are(
    calm: Embedded, method: str, path: str, allow: str
) -> None:
    async with calm.client() as admin:
        answer = await admin.request(method, path, json={})
    assert (answer.status_code, answer.headers.get("allow")) == (405, allow)
    assert answer.json()["reason"] == "MethodNotAllowed"


async def test_strangers_learn_neither_what_is_there_nor_by_which_method(calm: Embedded) -> None:
    async with calm.client(certificate=False) as stranger:
        answers = [
            await stranger.request(method, path)
            for method, path in (
                ("GET", "/nothing"),
                ("POST", "/metrics"),
                ("OPTIONS", CONFIGMAPS),
                ("GET", "/a/%2e%2e"),
            )
        ]
    assert [answer.status_code for answer in answers] == [401] * 4
    assert [answer.headers.get("allow") for answer in answers] == [None] * 4


async def test_an_upgrade_is_not_made(calm: Embedded) -> None:
    for protocol in (b"websocket", b"h2c", b"SPDY/3.1", b"TLS/1.0"):
        wish = (
            b"connection: upgrade",
            b"upgrade: " + protocol,
            b"sec-websocket-key: AAAA",
            b"sec-websocket-version: 13",
        )
        reply = await exchange(calm, get("/version", *wish))
        assert (protocol, reply.code) == (protocol, 200)
        assert b"upgrade" not in reply.head.lower()


async def test_a_body_that_waits_for_permission_gets_it_only_when_it_is_wanted(calm: Embedded) -> None:
    reader, writer = await connect(calm)
    head = post(CONFIGMAPS, b"", b"expect: 100-continue").replace(b"content-length: 0", b"content-length: 25")
    writer.write(head)
    assert (await read_reply(reader)).code == 100
    writer.write(CONFIGMAP)
    assert (await read_reply(reader)).code == 201
    writer.transport.abort()
    refused = head.replace(b"content-length: 25", b"content-length: 104857600")
    assert (await exchange(calm, refused)).code == 413
    assert (await exchange(calm, head, certificate=False)).code == 401


async def test_repeated_credentials_do_not_add_up(calm: Embedded) -> None:
    both = get("/api/v1/secrets", b"authorization: Bearer a.b.c", b"authorization: Basic YTpi")
    assert (await exchange(calm, both, certificate=False)).code == 401


async def test_head_has_the_headers_of_get_and_no_body(calm: Embedded) -> None:
    reader, writer = await connect(calm)
    writer.write(get("/version").replace(b"GET", b"HEAD", 1) + get("/version"))
    head = await reader.readuntil(b"\r\n\r\n")
    whole: Reply = await read_reply(reader)
    assert head.split(b"\r\n")[0] == whole.head.split(b"\r\n")[0]
    assert b"content-length: %d" % len(whole.body) in head
    writer.transport.abort()
