"""The audit log: a line per write of somebody who is known, whatever became of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastness.apiserver.door.audit import Audit, AuditEntry
from fastness.apiserver.verbs.paths import Target
from fastness.observe import metrics
from fastness.runtime.clock import SystemClock
from tests.embedded.fixtures import Embedded
from tests.virtual import VirtualClock

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
TARGET = Target("", "v1", "configmaps", "default", "c")
ENTRY = AuditEntry("id-1", "jane", "", "create", TARGET, "kubectl/v1.36", dry_run=False, code=201)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def test_writes_have_lines_and_reads_have_none(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        created = await client.post(CONFIGMAPS, json={"metadata": {"name": "c"}}, headers={"user-agent": "tester/1"})
        await client.get(f"{CONFIGMAPS}/c")
        await client.get(CONFIGMAPS)
        again = await client.post(CONFIGMAPS, json={"metadata": {"name": "c"}})
        broken = await client.post(CONFIGMAPS, content=b"{", headers={"content-type": "application/json"})
        tried = await client.delete(f"{CONFIGMAPS}/c?dryRun=All")
        gone = await client.delete(f"{CONFIGMAPS}/c")
    answers = (created, again, broken, tried, gone)
    lines = lines_of(embedded_server.directory / "audit.log")
    refused = lines_of(embedded_server.directory / "audit-refused.log")
    lines_by_id = {line["id"]: line for line in (*lines, *refused)}
    in_order = [lines_by_id[answer.headers["audit-id"]] for answer in answers]
    assert [line["code"] for line in in_order] == [201, 409, 400, 200, 200]
    assert [line["code"] for line in refused] == [409, 400]
    assert [line["dryRun"] for line in in_order] == [False, False, False, True, False]
    assert [line["verb"] for line in in_order] == ["create", "create", "create", "delete", "delete"]
    assert lines[0] | {"time": "", "id": ""} == {
        "time": "", "id": "", "user": "fastness-admin", "verb": "create", "group": "", "resource": "configmaps",
        "subresource": "", "namespace": "default", "name": "c", "agent": "tester/1", "dryRun": False, "code": 201,
    }  # fmt: skip


async def test_a_forbidden_write_is_told_and_who_was_behind_it(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        answer = await client.post(
            CONFIGMAPS, json={"metadata": {"name": "c"}}, headers={"impersonate-user": "mallory"}
        )
        assert answer.status_code == 403
    [line] = lines_of(embedded_server.directory / "audit-refused.log")
    assert (line["user"], line["by"], line["code"]) == ("mallory", "fastness-admin", 403)
    assert line["id"] == answer.headers["audit-id"]


async def test_strangers_cannot_fill_the_log(embedded_server: Embedded) -> None:
    async with embedded_server.client(certificate=False, token="a.b.c") as client:
        assert (await client.post(CONFIGMAPS, json={})).status_code == 401
    for name in ("audit.log", "audit-refused.log"):
        assert lines_of(embedded_server.directory / name) == []
    assert 'fastness_api_authentication_total{result="refused"}' in metrics.exposition().decode()


async def test_the_log_is_private(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        await client.post(CONFIGMAPS, json={"metadata": {"name": "c"}})
    assert (embedded_server.directory / "audit.log").stat().st_mode & 0o777 == 0o600


def test_the_log_is_cut_at_its_bound_and_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(SystemClock(), path, max_bytes=1000)
    for _ in range(50):
        audit.write(ENTRY)
    audit.close()
    rotated = path.with_name("audit.log.1")
    assert path.stat().st_size <= 1000
    assert rotated.stat().st_size <= 1000
    assert all(line["user"] == "jane" for line in (*lines_of(path), *lines_of(rotated)))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["audit.log", "audit.log.1"]


def test_a_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    for _ in range(2):
        audit = Audit(SystemClock(), tmp_path / "audit.log")
        audit.write(ENTRY)
        audit.close()
    assert len(lines_of(tmp_path / "audit.log")) == 2


def test_a_line_that_cannot_be_written_is_counted_and_does_not_fail_the_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = metrics.REGISTRY.value("fastness_audit_lost_total") or 0
    audit = Audit(SystemClock(), tmp_path)  # a directory: it cannot be opened for writing
    audit.write(ENTRY)
    audit.write(ENTRY)
    assert metrics.REGISTRY.value("fastness_audit_lost_total") == before + 2
    assert [record.getMessage() for record in caplog.records].count("audit.failed") == 1


async def test_a_generated_name_is_in_the_line(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        created = (await client.post(CONFIGMAPS, json={"metadata": {"generateName": "c-"}})).json()
    [line] = lines_of(embedded_server.directory / "audit.log")
    assert line["name"] == created["metadata"]["name"]


async def test_whoever_may_do_nothing_cannot_push_out_what_was_done(embedded_server: Embedded) -> None:
    """Refused requests with long names, one after the other, by somebody without any right."""
    async with embedded_server.client() as client:
        assert (await client.post(CONFIGMAPS, json={"metadata": {"name": "c"}})).status_code == 201
        mallory = {"impersonate-user": "mallory"}
        for _ in range(500):
            answer = await client.delete(f"{CONFIGMAPS}/{'n' * 4000}", headers=mallory)
            assert answer.status_code == 403
    assert [line["name"] for line in lines_of(embedded_server.directory / "audit.log")] == ["c"]
    refused = lines_of(embedded_server.directory / "audit-refused.log")
    assert len(refused) < 300
    assert {len(line["name"]) for line in refused} == {253}


async def test_what_was_left_out_is_counted_in_the_next_line_of_its_caller(tmp_path: Path) -> None:
    clock = VirtualClock()
    audit = Audit(clock, tmp_path / "audit.log")
    refused, other = replace(ENTRY, code=403), replace(ENTRY, code=403, user="joan")
    for _ in range(250):
        audit.write(refused)
    audit.write(other)
    await clock.advance(10)
    audit.write(refused)
    audit.close()
    lines = lines_of(tmp_path / "audit-refused.log")
    assert len(lines) == 202
    assert [line.get("leftOut") for line in lines[-2:]] == [None, 50]
    assert not (tmp_path / "audit.log").exists()


def test_a_flood_that_is_spread_over_assumed_names_counts_for_its_caller(tmp_path: Path) -> None:
    audit = Audit(VirtualClock(), tmp_path / "audit.log")
    for number in range(1000):
        audit.write(replace(ENTRY, code=403, user=f"somebody-{number}", by="mallory"))
    audit.close()
    assert len(lines_of(tmp_path / "audit-refused.log")) == 200
