"""A vault key that a key management service wraps: the command is a real process, the service a thread behind a socket."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastness.apiserver import ApiServer, ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.cli.main import cli
from fastness.keys.errors import KmsFailed
from fastness.kinds.registry import find

SECRETS = find("", "v1", "secrets").resource
COMMAND = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
line.sendall(sys.argv[2].encode() + b"\\n" + sys.stdin.buffer.read())
line.shutdown(socket.SHUT_WR)
sys.stdout.buffer.write(line.makefile("rb").read())
"""


class KeyService:
    """Holds a key that never leaves it; encrypts and decrypts for whoever reaches its socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cipher = AESGCM(AESGCM.generate_key(256))
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def command(self) -> tuple[str, ...]:
        return (sys.executable, "-c", COMMAND, str(self.path))

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                verb, _, data = connection.makefile("rb").read().partition(b"\n")
                connection.sendall(self._answer(verb, data))

    def _answer(self, verb: bytes, data: bytes) -> bytes:
        if verb == b"encrypt":
            nonce = os.urandom(12)
            return nonce + self._cipher.encrypt(nonce, data, b"vault")
        return self._cipher.decrypt(data[:12], data[12:], b"vault")

    def stop(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        self.path.unlink(missing_ok=True)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[KeyService]:
    service = KeyService(tmp_path / "kms.sock")
    yield service
    if service.path.exists():
        service.stop()


async def opened(state: Path, kms: tuple[str, ...] = ()) -> dict[str, str]:
    """What the secret of a state says; it is made where there is none."""
    async with open_apiserver(ServerOptions(state, kms=kms), PRODUCT) as server:
        return await _secret(server)


async def _secret(server: ApiServer) -> dict[str, str]:
    page = await server.cluster.list(SECRETS)
    for secret in page.items:
        if secret["metadata"]["name"] == "door":
            return dict(secret["data"])
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "door", "namespace": "default"}}
    return dict((await server.cluster.create(SECRETS, {**body, "stringData": {"code": "4711"}}))["data"])


def ran(*words: str, kms: tuple[str, ...] = ()) -> str:
    import shlex

    done = CliRunner().invoke(cli, words, env={"FASTNESS_KMS": shlex.join(kms)})
    assert done.exit_code == 0, done.output
    return done.output


async def test_a_new_state_has_its_keys_wrapped_and_opens_only_while_the_service_answers(
    tmp_path: Path, service: KeyService
) -> None:
    state = tmp_path / "state"
    made = await opened(state, service.command)
    stolen = (state / "vault.json").read_bytes()
    assert b"keys" not in stolen
    assert await opened(state, service.command) == made
    service.stop()
    with pytest.raises(KmsFailed, match="failed to decrypt the vault key") as refused:
        await opened(state, service.command)
    assert f"decrypt < {state / 'vault.json'}" in refused.value.hint
    assert (state / "vault.json").read_bytes() == stolen, "what cannot be opened is not replaced"


async def test_whoever_has_the_disk_and_not_the_service_opens_nothing(tmp_path: Path, service: KeyService) -> None:
    await opened(tmp_path / "state", service.command)
    shutil.copytree(tmp_path / "state", tmp_path / "stolen")
    done = CliRunner().invoke(cli, ["vault", "show", "--state", str(tmp_path / "stolen")])
    assert done.exit_code != 0
    assert "name that with --kms" in done.output


async def test_keys_of_somebody_else_in_clear_are_refused_where_a_service_wraps_them(
    tmp_path: Path, service: KeyService
) -> None:
    """Whoever can write the directory puts a state of their own there, whose keys they have."""
    await opened(tmp_path / "state", service.command)
    await opened(tmp_path / "theirs")
    shutil.rmtree(tmp_path / "state")
    shutil.copytree(tmp_path / "theirs", tmp_path / "state")
    with pytest.raises(KmsFailed, match="is not wrapped"):
        await opened(tmp_path / "state", service.command)


async def test_a_state_in_clear_is_wrapped_rotated_backed_up_restored_and_unwrapped(
    tmp_path: Path, service: KeyService
) -> None:
    state, target, again = tmp_path / "state", tmp_path / "backup.db", tmp_path / "again"
    made = await opened(state)
    at, kms = ("--state", str(state)), service.command
    assert "is wrapped" in ran("vault", "wrap", *at, kms=kms)
    assert b"keys" not in (state / "vault.json").read_bytes()
    before = ran("vault", "show", *at, kms=kms)
    await _rotated(state, kms)
    assert ran("vault", "show", *at, kms=kms) != before
    ran("backup", "create", *at, str(target), kms=kms)
    ran("restore", "--state", str(again), "--vault", str(state / "vault.json"), str(target), kms=kms)
    assert b"keys" not in (again / "vault.json").read_bytes()
    assert await opened(again, kms) == made
    ran("vault", "unwrap", *at, kms=kms)
    assert await opened(state) == made


async def _rotated(state: Path, kms: tuple[str, ...]) -> None:
    from fastness.app.vault_rotation import rotate_vault
    from fastness.runtime.clock import SystemClock, SystemEntropy

    await rotate_vault(state, "ada@host", "it was on the disk in clear", SystemClock(), SystemEntropy(), kms=kms)


def test_wrapping_needs_a_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["vault", "wrap", "--state", str(tmp_path)])
    assert done.exit_code != 0
    assert "no command was given" in done.output
