"""The control socket answers its owner, in bounds, and says no by name to everything else."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import ApiError, Unavailable
from fastness.sim import control_socket as hatches
from fastness.sim.control_client import FILE, MAX_REQUEST, ask_control, refusal, short_path
from fastness.sim.control_socket import TOGETHER, control_socket, ours
from fastness.sim.errors import DoneAlready, NoSuch, NotPossible
from fastness.sim.simulation import Simulation


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[Path]:
    """A socket in a directory that is deeper than the address of a socket may be long."""
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    async with control_socket(Simulation(deep, "cluster")):
        yield deep


async def ask(state: Path, request: JsonObject) -> JsonObject:
    return await asyncio.to_thread(ask_control, state, request)


async def raw(state: Path, data: bytes) -> JsonObject:
    with short_path(state) as path:
        reader, writer = await asyncio.open_unix_connection(path)
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    decoded = json.decode(answer)
    assert isinstance(decoded, dict)
    return decoded


async def test_it_lists_what_there_is_and_is_gone_afterwards(tmp_path: Path) -> None:
    async with control_socket(Simulation(tmp_path, "cluster")):
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
        listed = await ask(tmp_path, {"verb": "list"})
        assert (listed["simulated"], listed["machines"], listed["faults"]) == (True, [], [])
        assert listed["kinds"][0]["id"] == "changed-boot-loader"
    with pytest.raises(FileNotFoundError):
        await ask(tmp_path, {"verb": "list"})


async def test_a_socket_that_a_crash_left_is_replaced(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / FILE))
    left.close()
    with pytest.raises(ConnectionRefusedError):
        await ask(tmp_path, {"verb": "list"})
    async with control_socket(Simulation(tmp_path, "cluster")):
        assert (await ask(tmp_path, {"verb": "list"}))["simulated"]


@pytest.mark.parametrize(
    "request_",
    [
        {"verb": "do", "kind": "network-cut", "machine": "x"},
        {"verb": "add", "count": 1},
        {"verb": "reboot", "machine": "x"},
    ],
)
async def test_before_the_machines_are_there_it_asks_for_patience(state: Path, request_: JsonObject) -> None:
    with pytest.raises(Unavailable, match="not there yet"):
        await ask(state, request_)


async def test_images_are_pushed_listed_told_and_withdrawn(state: Path) -> None:
    [installed] = (await ask(state, {"verb": "list"}))["images"]
    assert installed["installed"]
    assert "43.0" in (await ask(state, {"verb": "push", "image": "43.0"}))["said"]
    listed = (await ask(state, {"verb": "list"}))["images"]
    [pushed] = [image for image in listed if not image["installed"]]
    manifest = (await ask(state, {"verb": "manifest", "image": pushed["image"]}))["said"]
    assert pushed["image"].endswith(str(sha256(manifest.encode())))
    await ask(state, {"verb": "withdraw", "image": "43.0"})
    assert (await ask(state, {"verb": "list"}))["images"] == [installed]
    with pytest.raises(NotPossible, match="has no image"):
        await ask(state, {"verb": "withdraw", "image": "43.0"})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\n", "not JSON"), (b"noise\n", "not JSON"), (b"[]\n", "names a verb"), (b'{"verb":"format"}\n', "names a verb"),
        (b'{"verb":["do"]}\n', "names a verb"), (b'{"verb":"list","more":1}\n', "does not know more"),
        (b'{"verb":"do","kind":1}\n', "are texts"), (b'{"verb":"add","count":"2"}\n', "count is a number"),
        (b'{"verb":"add","count":true}\n', "count is a number"), (b'{"verb":"add","count":1e99}\n', "count is a number"),
        (b'{"verb":"__init__"}\n', "names a verb"), (b"x" * (MAX_REQUEST + 1) + b"\n", "at most 16384 bytes"),
        (b'{"a":' * 50 + b"1" + b"}" * 50 + b"\n", "not JSON"),
    ],
)  # fmt: skip
async def test_what_is_no_request_is_refused(state: Path, data: bytes, words: str) -> None:
    error = (await raw(state, data))["error"]
    assert (error["code"], error["reason"]) == (400, "BadRequest")
    assert words in error["message"]


async def test_another_user_gets_no_answer(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatches, "ours", lambda _connection: False)
    with pytest.raises(Unavailable, match="only the user who started it"):
        await ask(state, {"verb": "list"})


def test_the_kernel_says_who_is_at_the_other_end(monkeypatch: pytest.MonkeyPatch) -> None:
    near, other = socket.socketpair()
    with near, other:
        assert hatches.asking(near) == os.geteuid()
        assert ours(near)
        for user, welcome in ((os.geteuid() + 1, False), (0, True)):
            monkeypatch.setattr(hatches, "asking", lambda _connection, user=user: user)
            assert ours(near) == welcome


async def test_more_than_a_few_at_once_are_sent_away(state: Path) -> None:
    with short_path(state) as path:
        waiting = [await asyncio.open_unix_connection(path) for _ in range(TOGETHER)]
    await asyncio.sleep(0.05)
    answer = await raw(state, b'{"verb":"list"}\n')
    assert answer["error"]["reason"] == "TooManyRequests"
    for _, writer in waiting:
        writer.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ({"reason": "BadRequest"}, NotPossible),
        ({"reason": "NotFound"}, NoSuch),
        ({"reason": "Conflict"}, DoneAlready),
        ({"reason": "?"}, Unavailable),
        ({}, Unavailable),
    ],
)
def test_a_refusal_is_the_same_error_at_the_other_end(status: JsonObject, kind: type[ApiError]) -> None:
    error = refusal({**status, "message": "why"})
    assert type(error) is kind
    assert "kubectl" not in error.hint


async def test_whatever_is_more_than_looking_is_noted_with_who_asked_and_what_came_of_it(tmp_path: Path) -> None:
    heard: list[tuple[int, str, int]] = []

    def noted(user: int, request: JsonObject, code: int) -> None:
        heard.append((user, str(request["verb"]), code))

    async with control_socket(Simulation(tmp_path, "cluster"), noted):
        await ask(tmp_path, {"verb": "list"})
        with pytest.raises(ApiError):
            await ask(tmp_path, {"verb": "reboot", "machine": "nobody"})
        await raw(tmp_path, b"not JSON\n")
    assert heard == [(os.geteuid(), "reboot", 503)]
