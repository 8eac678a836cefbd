"""`fastness break-glass`: from two keys to an override in force, and nothing without the second one."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.attestation.verdict.breakglass import ANNOTATION, agreed_override, listed_approvers
from fastness.cli.main import cli
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from tests.embedded.fixtures import Embedded
from tests.enrolling import settle_cluster


async def run(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, ["break-glass", *words], prog_name="fastness")


async def stored(embedded: Embedded) -> JsonObject:
    return await embedded.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")


async def people(directory: Path) -> list[dict[str, str]]:
    """Two approvers with keys of their own."""
    approvers = []
    for name in ("ada", "grace"):
        made = await run("key", str(directory / f"{name}.key"))
        assert made.exit_code == 0, made.output
        approvers.append({"name": name, "key": made.stdout.strip()})
        assert stat.S_IMODE((directory / f"{name}.key").stat().st_mode) == 0o600
    return approvers


async def test_two_approvers_put_an_override_into_force_and_one_does_not(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    approvers = await people(tmp_path)
    await settle_cluster(
        embedded_server.cluster, {"mode": "Enforce", "simulated": True, "breakGlass": {"approvers": approvers}}
    )
    where = ("--kubeconfig", str(embedded_server.kubeconfig))
    request = await run("ask", "--pool", "worker", "--reason", "bad values", "--for", "30m", *where)
    assert request.exit_code == 0, request.output
    file = tmp_path / "override.json"
    file.write_text(request.stdout)
    for attempt in range(2):
        agreed = await run("agree", str(file), "--by", "ada", "--key", str(tmp_path / "ada.key"))
        assert agreed.exit_code == 0, (attempt, agreed.output)
    alone = await run("apply", str(file), *where)
    assert alone.exit_code != 0
    assert "1 of 2 approvers" in alone.stderr
    assert ANNOTATION not in ((await stored(embedded_server))["metadata"].get("annotations") or {})
    await run("agree", str(file), "--by", "grace", "--key", str(tmp_path / "grace.key"))
    done = await run("apply", str(file), *where)
    assert done.exit_code == 0, done.output
    protected = await stored(embedded_server)
    override = agreed_override(protected, listed_approvers(protected))
    assert override is not None
    assert (override.pool, override.reason, override.by) == ("worker", "bad values", ("ada", "grace"))
    assert (await run("end", *where)).exit_code == 0
    protected = await stored(embedded_server)
    assert agreed_override(protected, listed_approvers(protected)) is None


async def test_a_key_is_never_written_over(tmp_path: Path) -> None:
    await people(tmp_path)
    key_before = (tmp_path / "ada.key").read_bytes()
    assert (await run("key", str(tmp_path / "ada.key"))).exit_code != 0
    assert (tmp_path / "ada.key").read_bytes() == key_before


@pytest.mark.parametrize(
    "content", ["", "[]", '{"statement": 1, "agreed": []}', '{"statement": {}, "agreed": [1]}', "x" * 9000]
)
async def test_a_file_that_is_no_override_is_refused(tmp_path: Path, content: str) -> None:
    await people(tmp_path)
    file = tmp_path / "override.json"
    file.write_text(content)
    refused = await run("agree", str(file), "--by", "ada", "--key", str(tmp_path / "ada.key"))
    assert refused.exit_code != 0
    assert refused.stderr.startswith("fastness: ")
    assert file.read_text() == content


@pytest.mark.parametrize("lasting", ["5h", "241m", "soon", "0h"])
async def test_too_long_is_refused_before_anybody_signs(embedded_server: Embedded, lasting: str) -> None:
    where = ("--kubeconfig", str(embedded_server.kubeconfig))
    refused = await run("ask", "--pool", "worker", "--reason", "x", "--for", lasting, *where)
    assert refused.exit_code != 0
    assert refused.stdout == ""
