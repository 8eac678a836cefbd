"""The vault seals for the store, survives rotation, and never invents a key where sealed data may exist."""

from __future__ import annotations

import base64
import stat
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from fastness.apiserver.store.seal import Cipher
from fastness.crypto.errors import BrokenSeal, UnknownSealKey
from fastness.crypto.secret import SecretBytes
from fastness.keys.errors import DamagedKeyFile, KmsFailed, MissingVaultKey, TrustError, UnsafeKeyFile
from fastness.keys.key_files import write_private
from fastness.keys.ring_files import PlainRingFile, WrappedRingFile
from fastness.keys.vault import Vault
from tests.unit.crypto.seeded import NOW, Seeded

CONTEXT = b'["","secrets","d","s"]'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault.key"


def opened(path: Path, seed: int = 1, *, create: bool = True) -> Vault:
    return Vault.open_file(PlainRingFile(path), NOW, Seeded(seed), create=create)


def test_vault_is_the_cipher_of_the_store(path: Path) -> None:
    cipher: Cipher = opened(path)
    assert cipher.open(cipher.seal(b"secret", CONTEXT), CONTEXT) == b"secret"
    with pytest.raises(ValueError, match="does not open"):
        cipher.open(cipher.seal(b"secret", CONTEXT), b"elsewhere")


def test_key_survives_a_restart(path: Path) -> None:
    sealed = opened(path).seal(b"secret", CONTEXT)
    again = opened(path, seed=2, create=False)
    assert again.open(sealed, CONTEXT) == b"secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_missing_key_is_never_replaced_where_sealed_data_may_exist(path: Path) -> None:
    with pytest.raises(MissingVaultKey) as caught:
        opened(path, create=False)
    assert str(path) in caught.value.message
    assert str(path) in caught.value.hint
    assert not path.exists()


def test_rotation_seals_with_a_new_key_and_opens_the_old(path: Path) -> None:
    vault = opened(path)
    before = vault.seal(b"before", CONTEXT)
    old = vault.primary
    new = vault.rotate(NOW)
    after = vault.seal(b"after", CONTEXT)
    assert vault.key_ids == (new, old)
    assert not vault.is_current(before)
    assert vault.is_current(after)
    again = opened(path, seed=3, create=False)
    assert again.primary == new
    assert (again.open(before, CONTEXT), again.open(after, CONTEXT)) == (b"before", b"after")


def test_retired_key_opens_no_more(path: Path) -> None:
    vault = opened(path)
    before, old = vault.seal(b"before", CONTEXT), vault.primary
    vault.rotate(NOW)
    vault.retire(old)
    for ring in (vault, opened(path, create=False)):
        with pytest.raises(UnknownSealKey):
            ring.open(before, CONTEXT)


def test_sealing_key_cannot_be_retired(path: Path) -> None:
    vault = opened(path)
    for key_id in (vault.primary, "00" * 8):
        with pytest.raises(MissingVaultKey):
            vault.retire(key_id)


def test_rotation_that_cannot_be_saved_does_not_happen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = opened(path)
    before = vault.key_ids

    def full(self: PlainRingFile, content: SecretBytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PlainRingFile, "save", full)
    with pytest.raises(OSError, match="No space"):
        vault.rotate(NOW)
    assert vault.key_ids == before
    assert opened(path, create=False).open(vault.seal(b"x", CONTEXT), CONTEXT) == b"x"


def test_vault_of_another_key_does_not_open(path: Path, tmp_path: Path) -> None:
    sealed = opened(path).seal(b"x", CONTEXT)
    with pytest.raises(UnknownSealKey):
        opened(tmp_path / "other.key", seed=9).open(sealed, CONTEXT)


def test_tampered_envelope_does_not_open(path: Path) -> None:
    vault = opened(path)
    sealed = bytearray(vault.seal(b"secret", CONTEXT))
    sealed[-1] ^= 1
    with pytest.raises(BrokenSeal):
        vault.open(bytes(sealed), CONTEXT)


def test_readable_key_file_is_refused(path: Path) -> None:
    opened(path)
    path.chmod(0o640)
    with pytest.raises(UnsafeKeyFile) as caught:
        opened(path)
    assert f"chmod 600 {path}" in caught.value.hint


def test_damaged_key_file_is_refused_and_not_quoted(path: Path) -> None:
    opened(path)
    document = orjson.loads(path.read_bytes())
    key = document["keys"][0]
    other = base64.b64encode(b"k" * 32).decode()
    damages = [
        b"", b"rubbish " + key["key"].encode(), b"[]", b"{}", orjson.dumps({"version": 2, "keys": [key]}),
        orjson.dumps({"version": 1, "keys": []}), orjson.dumps({"version": 1, "keys": [5]}),
        orjson.dumps({"version": 1, "keys": [{**key, "key": "AAAA"}]}),
        orjson.dumps({"version": 1, "keys": [{**key, "key": "!" + key["key"]}]}),
        orjson.dumps({"version": 1, "keys": [{**key, "key": other}]}),
        orjson.dumps({"version": 1, "keys": [{"key": key["key"]}]}),
    ]  # fmt: skip
    for damage in damages:
        write_private(path, SecretBytes(damage))
        with pytest.raises(DamagedKeyFile) as caught:
            opened(path)
        text = f"{caught.value.message} {caught.value.hint} {caught.value.__cause__!r}"
        assert str(path) in text
        assert key["key"] not in text


def test_keys_do_not_print_themselves(path: Path) -> None:
    vault = opened(path)
    key = orjson.loads(path.read_bytes())["keys"][0]["key"]
    assert key not in repr(vars(vault))


class Kms:
    """A command that wraps by a mask."""

    def __init__(self) -> None:
        self.calls: list[Sequence[str]] = []
        self.fails = False
        self.lazy = False

    def run(self, command: Sequence[str], data: bytes) -> tuple[int, bytes]:
        self.calls.append(command)
        if self.fails:
            return 7, b""
        return 0, data if self.lazy else bytes(byte ^ 0x5A for byte in data)


def test_kms_command_wraps_the_file(path: Path) -> None:
    kms = Kms()
    file = WrappedRingFile(path, ["kms", "--key", "k"], kms.run)
    sealed = Vault.open_file(file, NOW, Seeded(1), create=True).seal(b"x", CONTEXT)
    assert b'"keys"' not in path.read_bytes()
    again = Vault.open_file(file, NOW, Seeded(2), create=False)
    assert again.open(sealed, CONTEXT) == b"x"
    assert kms.calls == [["kms", "--key", "k", "encrypt"], ["kms", "--key", "k", "decrypt"]]
    with pytest.raises(DamagedKeyFile):
        opened(path)


def test_failing_kms_command_is_told_with_how_to_try_it(path: Path) -> None:
    kms = Kms()
    file = WrappedRingFile(path, ["kms"], kms.run)
    Vault.open_file(file, NOW, Seeded(1), create=True)
    kms.fails = True
    with pytest.raises(KmsFailed) as caught:
        Vault.open_file(file, NOW, Seeded(1), create=False)
    assert "exit status 7" in caught.value.message
    assert "kms decrypt" in caught.value.hint


def test_kms_command_that_does_not_encrypt_is_refused(path: Path) -> None:
    kms = Kms()
    kms.lazy = True
    with pytest.raises(KmsFailed, match="did not encrypt"):
        Vault.open_file(WrappedRingFile(path, ["kms"], kms.run), NOW, Seeded(1), create=True)
    assert not path.exists()


def test_a_ring_in_clear_is_refused_where_a_kms_command_is_given(path: Path) -> None:
    """Whoever writes to the disk cannot put keys of their own there."""
    opened(path)
    kms = Kms()
    with pytest.raises(KmsFailed, match="is not wrapped"):
        WrappedRingFile(path, ["kms"], kms.run).load()
    assert kms.calls == []


@pytest.mark.parametrize("answer", [b'{"ciphertext": "a2V5cw=="}', b'"keys"', b"7"])
def test_a_kms_may_answer_in_json(path: Path, answer: bytes) -> None:
    write_private(path, SecretBytes(answer))
    ring = WrappedRingFile(path, ["kms"], Kms().run).load()
    assert ring is not None
    assert Kms().run(["kms"], ring.reveal()) == (0, answer)


def test_every_error_has_a_code_of_its_own_and_asks_for_a_hint() -> None:
    kinds, error_kinds = [TrustError], []
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        error_kinds.append(kind)
        assert kind("what happened", "What to do.").hint == "What to do."
        with pytest.raises(TypeError):
            kind("what happened")  # type: ignore[call-arg]
    assert len({kind.code for kind in error_kinds}) == len(error_kinds) > 4
