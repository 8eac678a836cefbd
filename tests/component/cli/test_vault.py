"""`fastness vault rotate`: a new key for everything at rest.

Whenever the process dies, the directory opens and the next run goes on.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

import fastness
from fastness.apiserver import ApiServer, ServerOptions, open_apiserver
from fastness.apiserver.store import SealBroken, StoreForged
from fastness.app.backups import check_backup, make_backup
from fastness.app.product import PRODUCT
from fastness.app.vault_rotation import STEPS
from fastness.cli.run.vault import vault
from fastness.crypto.secret import SecretBytes
from fastness.keys.ring_files import PlainRingFile
from fastness.keys.vault import Vault
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.registry import find
from fastness.protocol.kbs_path import parse_path
from fastness.release.live.resources import SealedResources
from fastness.release.live.vault_turning import ACT
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.granting import grant_of
from tests.patience import PATIENCE

pytestmark = pytest.mark.processes

SECRETS = find("", "v1", "secrets").resource
PLACE = str(Path(fastness.__file__).resolve().parent.parent)
PATH = parse_path("default/db/password")
CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.app.vault_rotation import rotate_vault
def point(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(rotate_vault(Path(sys.argv[1]), "ada@host", "yearly", SystemClock(), SystemEntropy(), point))
"""


async def ended(*words: str) -> subprocess.CompletedProcess[str]:
    """A program that ran to its end, with the source that this test runs with."""
    env = {**os.environ, "PYTHONPATH": PLACE}
    return await asyncio.to_thread(
        subprocess.run, words, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def ring(state: Path) -> Vault:
    return Vault.open_file(PlainRingFile(state / "vault.json"), datetime.now(UTC), SystemEntropy(), create=False)


def opened(state: Path) -> AbstractAsyncContextManager[ApiServer]:
    return open_apiserver(ServerOptions(state), PRODUCT, SystemClock(), SystemEntropy())


async def made(state: Path) -> None:
    """A state with a Secret, with a resource that the broker sealed, and with a past."""
    async with opened(state) as server:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "namespace": "default"},
            "stringData": {"k": "v"},
        }
        await server.cluster.create(SECRETS, body)
        assert PATH is not None
        await SealedResources(server.cluster, server.vault).write(PATH, SecretBytes(b"hunter2"))


async def whole(state: Path) -> list[dict[str, object]]:
    """Everything opens; the entries about rotations that wait for the record."""
    async with opened(state) as server:
        secret = await server.cluster.get(SECRETS, "s", "default")
        assert base64.b64decode(secret["data"]["k"]) == b"v"
        assert PATH is not None
        resource = await SealedResources(server.cluster, server.vault).read(grant_of(PATH), PATH, {})
        assert resource is not None
        assert resource.value.reveal() == b"hunter2"
        batches = (await server.cluster.list(AUDIT_BATCH.resource)).items
        return [entry for batch in batches for entry in batch["spec"]["entries"] if entry["what"] == ACT]


async def test_a_process_that_is_killed_after_any_step_leaves_a_state_that_opens_and_the_next_one_ends_it(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    await made(state)
    first = ring(state).primary
    for step in STEPS:
        done = await ended(sys.executable, "-c", CHILD, str(state), step)
        assert done.returncode == -signal.SIGKILL, step
        keys = ring(state).key_ids
        assert (len(keys), first in keys) == ((1, False) if step == "retired" else (2, True)), step
    # Each attempt opened what the one before it had left; whether all of it is still there is looked at in the end.
    entries = await whole(state)
    assert {(entry["who"], entry["detail"]["reason"]) for entry in entries} == {("ada@host", "yearly")}  # type: ignore[index]
    assert entries[0]["detail"]["before"] == first  # type: ignore[index]
    assert len(entries) == 3, "one for each attempt that got so far, and never none"


async def test_the_old_key_opens_nothing_of_the_new_state_and_the_new_one_no_old_backup(tmp_path: Path) -> None:
    state = tmp_path / "state"
    await made(state)
    shutil.copy(state / "vault.json", tmp_path / "old.json")
    make_backup(state, tmp_path / "before.db", ring(state))
    words = ["rotate", "--state", str(state), "--reason", "yearly", "-o", "json"]
    result = await asyncio.to_thread(CliRunner().invoke, vault, words)
    assert result.exit_code == 0, result.output
    done = json.loads(result.stdout)
    assert (done["resources"], done["resumed"], len(done["retired"])) == (1, False, 1)
    assert CliRunner().invoke(vault, ["show", "--state", str(state)]).stdout == f"{done['key']} seals what is written\n"
    await whole(state)
    make_backup(state, tmp_path / "after.db", ring(state))
    old = Vault.open_file(PlainRingFile(tmp_path / "old.json"), datetime.now(UTC), SystemEntropy(), create=False)
    check_backup(tmp_path / "before.db", old)
    for backup, key in (("before.db", ring(state)), ("after.db", old)):
        with pytest.raises((SealBroken, StoreForged)):
            check_backup(tmp_path / backup, key)


async def test_nothing_is_rotated_under_a_running_control_plane_or_without_a_reason(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with opened(state):
        before = ring(state).key_ids
        command = [sys.executable, "-m", "fastness.cli.main", "vault", "rotate", "--state", str(state)]
        refused = await ended(*command, "--reason", "r")
        assert (refused.returncode != 0, "in use" in refused.stderr) == (True, True), refused.stderr
        assert (await ended(*command)).returncode == 2
        assert ring(state).key_ids == before
