"""The audit log: a line per write of somebody who is known, whatever became of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastness.cluster.clock import SystemClock
from fastness.cluster.embedded.paths import Target
from fastness.observe import metrics
from fastness.services.api.audit import Audit, Entry
from tests.embedded.fixtures import Embedded

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
TARGET = Target("", "v1", "configmaps", "default", "c")
ENTRY = Entry("id-1", "jane", "", "create", TARGET, "kubectl/v1.36", dry_run=False, code=201)


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
    assert [line["code"] for line in lines] == [201, 409, 400, 200, 200]
    assert [line["id"] for line in lines] == [answer.headers["audit-id"] for answer in answers]
    assert [line["dryRun"] for line in lines] == [False, False, False, True, False]
    assert [line["verb"] for line in lines] == ["create", "create", "create", "delete", "delete"]
    assert lines[0] | {"time": "", "id": ""} == {
        "time": "", "id": "", "user": "fastness-admin", "verb": "create", "group": "", "resource": "configmaps",
        "subresource": "", "namespace": "default", "name": "", "agent": "tester/1", "dryRun": False, "code": 201,
    }  # fmt: skip


async def test_a_forbidden_write_is_told_and_who_was_behind_it(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        answer = await client.post(
            CONFIGMAPS, json={"metadata": {"name": "c"}}, headers={"impersonate-user": "mallory"}
        )
        assert answer.status_code == 403
    [line] = lines_of(embedded_server.directory / "audit.log")
    assert (line["user"], line["by"], line["code"]) == ("mallory", "fastness-admin", 403)
    assert line["id"] == answer.headers["audit-id"]


async def test_strangers_cannot_fill_the_log(embedded_server: Embedded) -> None:
    async with embedded_server.client(certificate=False, token="a.b.c") as client:
        assert (await client.post(CONFIGMAPS, json={})).status_code == 401
    assert lines_of(embedded_server.directory / "audit.log") == []
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
    kept = path.with_name("audit.log.1")
    assert path.stat().st_size <= 1000
    assert kept.stat().st_size <= 1000
    assert all(line["user"] == "jane" for line in (*lines_of(path), *lines_of(kept)))
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
    before = metrics.AUDIT_LOST._value.get()
    audit = Audit(SystemClock(), tmp_path)  # a directory: it cannot be opened for writing
    audit.write(ENTRY)
    audit.write(ENTRY)
    assert metrics.AUDIT_LOST._value.get() == before + 2
    assert [record.getMessage() for record in caplog.records].count("audit.failed") == 1
