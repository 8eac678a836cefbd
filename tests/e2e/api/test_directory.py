"""A state directory that is taken, closed, full, damaged or old: a clear word, a way out, and nothing overwritten."""

from __future__ import annotations

import asyncio
import resource
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from fastness.crypto.x509 import Certificate
from fastness.keys.pki import ApiPki
from fastness.runtime.clock import SystemEntropy
from tests.e2e.api.process import CONFIGMAPS, Up, fastness
from tests.patience import PATIENCE

IN_USE_OR_MISSING = 3
SECRETS = "/api/v1/namespaces/default/secrets"


async def made(state: Path) -> None:
    """A state directory with a Secret in it, at rest."""
    async with Up(state) as up, up.client() as client:
        answer = await client.post(SECRETS, json={"metadata": {"name": "s"}, "data": {"k": "dg=="}})
        assert answer.status_code == 201, answer.text
        assert up.stop() == 0


def snapshot(state: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(state)): path.read_bytes()
        for path in state.rglob("*")
        if path.is_file() and path.name != "state.lock"
    }


async def test_a_second_up_is_told_who_was_first(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with Up(state) as up, up.client() as client:
        done = await asyncio.to_thread(fastness, "up", "--state", state, "--port", 0)
        assert done.returncode == IN_USE_OR_MISSING
        assert str(up.process.pid) in done.stderr
        assert "Traceback" not in done.stderr
        assert (await client.get("/readyz")).text == "ok"
        assert up.stop() == 0


def test_a_port_in_use_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = fastness("up", "--state", tmp_path / "state", "--port", port)
    assert done.returncode == IN_USE_OR_MISSING
    assert f"port {port} on 127.0.0.1 is in use" in done.stderr
    assert "--port 0" in done.stderr
    assert not (tmp_path / "state").exists()


@pytest.fixture
def closed() -> Iterator[Path]:
    """A place that even root cannot write: below a file, or in a file system without room for names."""
    directory = Path(tempfile.mkdtemp(prefix="fastness-up-"))
    (directory / "file").write_text("not a directory")
    yield directory / "file" / "state"
    shutil.rmtree(directory)


def test_a_state_directory_that_cannot_be_made_is_a_clear_error(closed: Path) -> None:
    done = fastness("up", "--state", closed, "--port", 0)
    assert done.returncode == IN_USE_OR_MISSING
    assert "fastness: " in done.stderr
    assert str(closed) in done.stderr
    assert "Traceback" not in done.stderr


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no longer what it was\n" * 200)
    path.chmod(0o600)


def _open_to_all(path: Path) -> None:
    path.chmod(0o644)


def _missing(path: Path) -> None:
    path.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGE: list[tuple[str, Callable[[Path], None]]] = [
    ("state.db", _garbage),
    ("state.db", _cut),
    ("vault.json", _garbage),
    ("vault.json", _missing),
    ("vault.json", _open_to_all),
    ("pki/ca.pem", _open_to_all),
    ("pki/ca.pem", _garbage),
    ("pki/service-account.pem", _garbage),
]


async def test_damage_is_named_with_the_way_out_and_nothing_is_overwritten(tmp_path: Path) -> None:
    good = tmp_path / "good"
    await made(good)
    for number, (name, damage) in enumerate(DAMAGE):
        state = tmp_path / f"bad-{number}"
        shutil.copytree(good, state)
        damage(state / name)
        before = snapshot(state)
        done = await asyncio.to_thread(fastness, "up", "--state", state, "--port", 0)
        context = f"{name} {damage.__name__}: {done.stderr}"
        assert done.returncode == IN_USE_OR_MISSING, context
        assert "Traceback" not in done.stderr, context
        assert Path(name).name in done.stderr, context
        assert len(done.stderr.strip().splitlines()) >= 2, context
        after = snapshot(state)
        assert {key: after.get(key) for key in before} == before, context


async def test_an_expired_serving_certificate_is_renewed_at_start(tmp_path: Path) -> None:
    state = tmp_path / "state"
    past = datetime.now(UTC) - timedelta(days=200)
    pki = ApiPki.open(state / "pki", ["127.0.0.1", "localhost"], past, SystemEntropy())
    assert pki.serving.certificate.not_after < datetime.now(UTC)
    async with Up(state) as up, up.client() as client:
        assert (await client.get("/version")).status_code == 200
        assert up.stop() == 0
    pem = (state / "pki" / "serving.pem").read_bytes()
    renewed = Certificate.from_pem(pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    assert renewed.not_after > datetime.now(UTC) + timedelta(days=60)


async def test_a_full_disk_refuses_writes_answers_reads_and_recovers(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with Up(state) as up, up.client() as client:
        unlimited = resource.prlimit(up.process.pid, resource.RLIMIT_FSIZE)
        largest = max(path.stat().st_size for path in state.iterdir() if path.is_file())
        resource.prlimit(up.process.pid, resource.RLIMIT_FSIZE, (largest + 300_000, unlimited[1]))
        acknowledged, refused = await _fill(client)
        assert refused.status_code == 503, refused.text
        assert refused.json()["reason"] == "ServiceUnavailable"
        assert "retry-after" in refused.headers
        listed = await client.get(CONFIGMAPS)
        assert acknowledged <= {item["metadata"]["name"] for item in listed.json()["items"]}
        assert (await client.get("/livez")).status_code == 200
        resource.prlimit(up.process.pid, resource.RLIMIT_FSIZE, unlimited)
        await _recovered(client)
        assert (await client.get("/readyz")).status_code == 200
        assert "fastness_defects_total{" not in (await client.get("/metrics")).text
        assert up.stop() == 0
        assert "Traceback" not in up.stderr_text()
    async with Up(state) as up, up.client() as client:
        listed = await client.get(CONFIGMAPS)
        assert acknowledged | {"after"} <= {item["metadata"]["name"] for item in listed.json()["items"]}
        assert up.stop() == 0


async def _fill(client: httpx.AsyncClient) -> tuple[set[str], httpx.Response]:
    """Write until the disk is full."""
    acknowledged: set[str] = set()
    for number in range(2000):
        answer = await client.post(CONFIGMAPS, json={"metadata": {"name": f"f{number}"}, "data": {"k": "x" * 20_000}})
        if answer.status_code != 201:
            return acknowledged, answer
        acknowledged.add(f"f{number}")
    raise AssertionError("the disk did not become full")


async def _recovered(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await client.post(CONFIGMAPS, json={"metadata": {"name": "after"}})
            if answer.status_code in (201, 409):
                return
            await asyncio.sleep(0.2)
