"""User-data: three words are taken from it, and anything more is refused by its path."""

from __future__ import annotations

import base64
import copy
import gzip
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import json
from fastness.formats.errors import UserDataError
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.machineconfig.pointer import pointer
from fastness.protocol.ignition_spec import SPEC3
from fastness.protocol.user_data import MAX_BYTES, MAX_DEPTH, VERSION, UserData, parse_user_data

TICKET, SERVER = "fjt_Zm9ydHJlc3M-_0", "https://cluster.example:8000"
READ = UserData("worker", SERVER, TICKET)
OURS: dict[str, Any] = {"version": VERSION, "pool": "worker", "ticket": TICKET, "server": SERVER}
HEADERS = [
    {"name": "Authorization", "value": f"Bearer {TICKET}"},
    {"name": "X-Fastness-Server", "value": SERVER},
]
SOURCE = "http://127.0.0.1:22625/config/worker"
STOCK: dict[str, Any] = {
    "ignition": {"version": "3.2.0", "config": {"merge": [{"source": SOURCE, "httpHeaders": HEADERS}]}}
}


def with_member(document: dict[str, Any], steps: tuple[str | int, ...], value: Any) -> bytes:
    """The document with one value more, or another one, at a place."""
    changed = copy.deepcopy(document)
    place: Any = changed
    for step in steps[:-1]:
        place = place[step]
    if isinstance(place, list) and steps[-1] == len(place):
        place.append(value)
    else:
        place[steps[-1]] = value
    return json.encode(changed)


def refusal(data: bytes) -> UserDataError:
    with pytest.raises(UserDataError) as refused:
        parse_user_data(data)
    assert refused.value.code == "user-data-refused"
    assert TICKET not in f"{refused.value}{refused.value.hint}"
    return refused.value


@pytest.mark.parametrize("document", [OURS, STOCK], ids=["ours", "stock"])
def test_both_documents_say_pool_ticket_and_server(document: dict[str, Any]) -> None:
    assert parse_user_data(json.encode(document)) == READ
    assert TICKET not in repr(parse_user_data(json.encode(document)))


@pytest.mark.parametrize("version", [version for version in SPEC3 if version >= "3.1.0"])
@pytest.mark.parametrize("name", ["worker", "infra-2.eu"])
def test_what_the_user_data_controller_writes_is_read(name: str, version: str) -> None:
    written = pointer(name, TrustModel.CONFIDENTIAL_CLUSTER, Doors(SERVER, ""), TICKET, version)
    assert parse_user_data(json.encode(written)) == UserData(name, SERVER, TICKET)


def test_headers_may_come_in_either_order_and_the_server_may_end_with_a_slash() -> None:
    data = with_member(STOCK, ("ignition", "config", "merge", 0, "httpHeaders"), HEADERS[::-1])
    assert parse_user_data(data) == READ
    assert parse_user_data(with_member(OURS, ("server",), SERVER + "/")) == READ


MERGE = ("ignition", "config", "merge")
FIRST = (*MERGE, 0)
MORE: list[tuple[tuple[str | int, ...], Any, str, str]] = [
    (("storage",), {"files": [{"path": "/usr/lib/fastness/trust.json"}]}, "/storage", "files and disks"),
    (("storage",), {}, "/storage", "files and disks"),
    (("systemd",), {"units": [{"name": "evil.service", "enabled": True}]}, "/systemd", "units"),
    (("passwd",), {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 A"]}]}, "/passwd", "users"),
    (("kernelArguments",), {"shouldExist": ["init=/bin/sh"]}, "/kernelArguments", "command line"),
    (("fastness",), {}, "/fastness", "only pool"),
    (("ignition", "config", "replace"), {"source": "https://evil.example"}, "/ignition/config/replace", "signed"),
    (("ignition", "config", "append"), [], "/ignition/config/append", "signed"),
    (("ignition", "proxy"), {"httpProxy": "http://evil.example"}, "/ignition/proxy", "between"),
    (("ignition", "security"), {"tls": {"certificateAuthorities": []}}, "/ignition/security", "authority"),
    (("ignition", "timeouts"), {}, "/ignition/timeouts", "how long"),
    ((*MERGE, 1), {"source": "data:,{}"}, "/ignition/config/merge/1", "one place"),
    ((*FIRST, "verification"), {}, "/ignition/config/merge/0/verification", "only pool"),
    ((*FIRST, "compression"), "gzip", "/ignition/config/merge/0/compression", "only pool"),
    ((*FIRST, "httpHeaders", 2), {"name": "Cookie", "value": "x"}, "/ignition/config/merge/0/httpHeaders/2", "only pool"),
    ((*FIRST, "httpHeaders", 0, "x"), "", "/ignition/config/merge/0/httpHeaders/0/x", "only pool"),
    (("a/b~c\x1b[2J",), 1, "/a~1b~0c?[2J", "only pool"),
]  # fmt: skip
OTHER: list[tuple[tuple[str | int, ...], Any, str, str]] = [
    (("ignition",), [], "/ignition", "not an object"),
    (("ignition", "version"), "2.2.0", "/ignition/version", "version"),
    (("ignition", "version"), "3.0.0", "/ignition/version", "version"),
    (("ignition", "version"), 3.2, "/ignition/version", "version"),
    (("ignition", "config"), None, "/ignition/config", "not an object"),
    (MERGE, [], "/ignition/config/merge", "list of 1"),
    (MERGE, {}, "/ignition/config/merge", "list of 1"),
    (FIRST, "x", "/ignition/config/merge/0", "not an object"),
    ((*FIRST, "source"), "https://evil.example/config/worker", "/ignition/config/merge/0/source", "the source is"),
    ((*FIRST, "source"), "http://127.0.0.1:22625@evil.example/config/x", "/ignition/config/merge/0/source", "the source"),
    ((*FIRST, "source"), SOURCE + "/../x", "/ignition/config/merge/0/source", "name a pool"),
    ((*FIRST, "source"), SOURCE + "?x=1", "/ignition/config/merge/0/source", "name a pool"),
    ((*FIRST, "source"), SOURCE + "\n", "/ignition/config/merge/0/source", "name a pool"),
    ((*FIRST, "source"), None, "/ignition/config/merge/0/source", "the source is"),
    ((*FIRST, "httpHeaders"), HEADERS[:1], "/ignition/config/merge/0/httpHeaders", "list of 2"),
    ((*FIRST, "httpHeaders"), HEADERS[:1] * 2, "/ignition/config/merge/0/httpHeaders/1/name", "each once"),
    ((*FIRST, "httpHeaders", 0, "name"), "authorization", "/ignition/config/merge/0/httpHeaders/0/name", "each once"),
    ((*FIRST, "httpHeaders", 0, "value"), ["Bearer x"], "/ignition/config/merge/0/httpHeaders/0/value", "text"),
    ((*FIRST, "httpHeaders", 0, "value"), "Basic eA==", "/ignition/config/merge/0/httpHeaders/0/value", "Bearer"),
    ((*FIRST, "httpHeaders", 0, "value"), "Bearer a b", "/ignition/config/merge/0/httpHeaders/0/value", "not a ticket"),
    ((*FIRST, "httpHeaders", 1, "value"), "http://x", "/ignition/config/merge/0/httpHeaders/1/value", "https"),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "value", "path", "reason"), [*MORE, *OTHER])
def test_everything_else_in_a_pointer_is_refused_by_its_path(
    steps: tuple[str | int, ...], value: Any, path: str, reason: str
) -> None:
    refused = refusal(with_member(STOCK, steps, value))
    assert refused.path == path
    assert reason in refused.message
    assert "fastness userdata" in refused.hint


@pytest.mark.parametrize(
    ("steps", "value", "path"),
    [
        (("storage",), {}, "/storage"), (("ignition",), {}, "/pool"), (("ca",), "", "/ca"), (("version",), "v2", "/version"),
        (("pool",), "../worker", "/pool"), (("pool",), "", "/pool"), (("pool",), ["worker"], "/pool"),
        (("ticket",), "a\r\nX-Evil: 1", "/ticket"), (("ticket",), "t" * 513, "/ticket"), (("ticket",), None, "/ticket"),
        (("server",), "https://a.example/path", "/server"), (("server",), "https://u:p@a.example", "/server"),
    ],
)  # fmt: skip
def test_everything_else_in_our_document_is_refused_by_its_path(
    steps: tuple[str | int, ...], value: Any, path: str
) -> None:
    refused = refusal(with_member(OURS, steps, value))
    assert refused.path in (path, "/version")


@pytest.mark.parametrize("name", ["version", "pool", "ticket", "server"])
def test_a_member_that_lacks_is_named(name: str) -> None:
    rest = {key: value for key, value in OURS.items() if key != name}
    assert refusal(json.encode(rest)).path == ("" if name == "version" else f"/{name}")


def test_a_repeated_member_is_refused_because_two_readers_would_take_two_of_them() -> None:
    text = json.encode(STOCK)
    assert refusal(text.replace(b'"source"', b'"source":"x","source"')).path == "/ignition/config/merge/0/source"
    assert refusal(text.replace(b'{"ignition"', b'{"ignition":{},"ignition"')).path == "/ignition"
    escaped = text.replace(b'"config"', b'"config":{},"\\u0063onfig"')
    assert refusal(escaped).path == "/ignition/config"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"null", b"[]", b'"x"', b"{}", b"#cloud-config\nruncmd: [id]\n", b"#!/bin/sh\nid\n", b"#include https://evil.example\n",
        gzip.compress(json.encode(STOCK)), base64.b64encode(json.encode(STOCK)), b"\xef\xbb\xbf" + json.encode(STOCK),
        json.encode(STOCK).decode().encode("utf-16"), json.encode(STOCK) + b"{}", json.encode(STOCK) + b"\0",
        json.encode(STOCK) + b" " * MAX_BYTES, b"[" * 9000, b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1),
        json.encode(OURS).replace(b"worker", b"work\xffer"), json.encode(OURS).replace(b"worker", b"work\\ud800er"),
    ],
)  # fmt: skip
def test_what_is_not_one_plain_document_is_refused_as_a_whole(data: bytes) -> None:
    assert refusal(data).path == ""


def test_a_platform_that_gives_nothing_is_told_so() -> None:
    assert "there is nothing in it" in str(refusal(b""))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.text(max_size=8) | st.sampled_from(
    ["ignition", "config", "merge", "storage", "systemd", "passwd", "kernelArguments", "replace", "proxy", "security", "tls"]
)  # fmt: skip


def containers(value: Any) -> list[Any]:
    """Every object and list of a document."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, dict | list) else []) + [part for child in below for part in containers(child)]


@given(st.data(), st.sampled_from([OURS, STOCK]), NAMES, JSON)
def test_no_document_with_anything_more_is_accepted(
    data: st.DataObject, document: dict[str, Any], name: str, value: Any
) -> None:
    changed = copy.deepcopy(document)
    place = data.draw(st.sampled_from(containers(changed)))
    if isinstance(place, list):
        place.insert(data.draw(st.integers(0, len(place))), value)
    elif name in place:
        return
    else:
        place[name] = value
    refusal(json.encode(changed))


@given(st.data(), st.sampled_from([OURS, STOCK]), JSON)
def test_whatever_is_accepted_says_three_words_and_nothing_else(
    data: st.DataObject, document: dict[str, Any], value: Any
) -> None:
    changed = copy.deepcopy(document)
    place = data.draw(st.sampled_from(containers(changed)))
    step = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
    place[step] = value
    try:
        read = parse_user_data(json.encode(changed))
    except UserDataError:
        return
    ours = {"version": VERSION, "pool": read.pool, "ticket": read.ticket, "server": read.server}
    stock = pointer(read.pool, TrustModel.CONFIDENTIAL_CLUSTER, Doors(read.server, ""), read.ticket)
    assert changed in (ours, stock)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    refusal(data)
