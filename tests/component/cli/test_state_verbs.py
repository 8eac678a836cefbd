"""`fastness state` and `doctor` about an object that nobody can read."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.apiserver.store import Key, WriteStep
from fastness.app.product import PRODUCT
from fastness.cli.main import cli

KEY = Key("", "configmaps", "default", "deep")


async def _with_an_unreadable_object(state: Path) -> None:
    body = b'{"metadata":{"name":"deep","resourceVersion":"1"},"data":' + b'{"a":' * 400 + b"1" + b"}" * 401
    async with open_apiserver(ServerOptions(state), PRODUCT) as server:
        await server.api.store.write(lambda _: WriteStep(KEY, body, 0))


async def _set_aside(state: Path) -> int:
    async with open_apiserver(ServerOptions(state), PRODUCT) as server:
        return len(server.api.store.aside)


def test_what_cannot_be_read_is_listed_named_by_doctor_and_removed_while_nothing_runs(tmp_path: Path) -> None:
    state = tmp_path / "state"
    asyncio.run(_with_an_unreadable_object(state))
    run = CliRunner().invoke
    options = ["--state", str(state)]
    [listed] = json.loads(run(cli, ["state", "list", *options, "-o", "json"]).stdout)
    assert (listed["resource"], listed["namespace"], listed["name"]) == ("configmaps", "default", "deep")
    assert "deeper than 160 levels" in listed["reason"]
    findings = json.loads(run(cli, ["doctor", *options, "-o", "json"]).stdout)["findings"]
    [finding] = [check for check in findings if check["name"] == "objects"]
    assert "set aside: configmaps default/deep" in finding["found"]
    assert "fastness state remove configmaps deep -n default" in finding["fix"]
    removed = run(cli, ["state", "remove", *options, "configmaps", "deep", "-n", "default"])
    assert removed.exit_code == 0, removed.output
    assert asyncio.run(_set_aside(state)) == 0
    assert run(cli, ["state", "list", *options]).stdout == "Everything can be read.\n"


def test_an_object_that_can_be_read_is_not_removed_past_the_api(tmp_path: Path) -> None:
    state = tmp_path / "state"
    asyncio.run(_with_an_unreadable_object(state))
    refused = CliRunner().invoke(cli, ["state", "remove", "--state", str(state), "namespaces", "default"])
    assert refused.exit_code == 3
    assert "not set aside" in refused.stderr


def test_a_directory_without_a_store_is_said_to_have_none(tmp_path: Path) -> None:
    refused = CliRunner().invoke(cli, ["state", "list", "--state", str(tmp_path)])
    assert refused.exit_code == 3
