"""Keys of disks at rest: sealed in the store, in its backup, and over a new vault key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.backups import make_backup, restore_backup
from fastness.app.product import PRODUCT
from fastness.app.vault_rotation import rotate_vault
from fastness.crypto.errors import BrokenSeal
from fastness.disks.keyring import secret_name
from fastness.disks.live.key_store import DiskKeys
from fastness.keys.authorities import SECRETS
from fastness.kube.places import DISKS
from fastness.kube.port import PatchType
from fastness.runtime.clock import SystemClock, SystemEntropy

ENTROPY = SystemEntropy()
ONE, OTHER = "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11", "9d3b2f60-1c55-4d4f-8f0a-6a2f6f0f7b22"


async def test_a_backup_carries_keys_wrapped_and_a_restored_store_opens_them(tmp_path: Path) -> None:
    state, file, again = tmp_path / "state", tmp_path / "backup", tmp_path / "again"
    async with open_apiserver(ServerOptions(state), PRODUCT) as server:
        keys = DiskKeys(server.cluster, server.vault, ENTROPY)
        for machine in (ONE, OTHER):
            await keys.make(machine, "var", "k1")
        await keys.make(ONE, "var", "k2")
        vault = server.vault
        before = [(name, key.reveal()) for name, key in await keys.read(ONE, "var")]
        assert [name for name, _ in before] == ["k2", "k1"]
        make_backup(state, file, vault)
    content = file.read_bytes()
    assert not any(key in content for _, key in before)
    again.mkdir()
    restore_backup(file, again, vault)
    shutil.copy(state / "vault.json", again)
    async with open_apiserver(ServerOptions(again), PRODUCT) as server:
        restored = await DiskKeys(server.cluster, server.vault, ENTROPY).read(ONE, "var")
        assert [(name, key.reveal()) for name, key in restored] == before


async def test_a_new_vault_key_seals_the_keys_of_disks_anew(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with open_apiserver(ServerOptions(state), PRODUCT) as server:
        keys = DiskKeys(server.cluster, server.vault, ENTROPY)
        await keys.make(ONE, "var", "k1")
        ((_, before),) = await keys.read(ONE, "var")
    await rotate_vault(state, "ada", "yearly", SystemClock(), ENTROPY)
    async with open_apiserver(ServerOptions(state), PRODUCT) as server:
        ((_, after),) = await DiskKeys(server.cluster, server.vault, ENTROPY).read(ONE, "var")
    assert after.reveal() == before.reveal()


async def test_the_key_of_one_machine_does_not_open_under_the_name_of_another(tmp_path: Path) -> None:
    """Whoever may edit Secrets puts one machine's key in another's place."""
    async with open_apiserver(ServerOptions(tmp_path / "state"), PRODUCT) as server:
        keys = DiskKeys(server.cluster, server.vault, ENTROPY)
        for machine in (ONE, OTHER):
            await keys.make(machine, "var", "k1")
        stolen = await server.cluster.get(SECRETS, secret_name(ONE), DISKS)
        patch = {"data": stolen["data"]}
        await server.cluster.patch(SECRETS, secret_name(OTHER), patch, PatchType.MERGE, DISKS)
        with pytest.raises(BrokenSeal):
            await keys.read(OTHER, "var")
