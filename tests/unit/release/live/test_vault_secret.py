"""The vault key in a Secret: made once, shared by replicas, and never made anew beside what was sealed."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest

from fastness.keys.errors import DamagedKeyFile, MissingVaultKey
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.port import Page, Scope
from fastness.release.live.vault_secret import NAME, RING, open_vault_secret
from tests.unit.crypto.seeded import NOW
from tests.virtual import SeededEntropy

CONTEXT = b"somewhere"


class Secrets:
    """The Secret of the vault, and whether anything is sealed; `rival` writes first, once."""

    def __init__(self, sealed: bool = False) -> None:
        self.secret: JsonObject = {"metadata": {"name": NAME, "resourceVersion": "1"}}
        self.sealed = sealed
        self.rival: JsonObject | None = None

    async def get(self, _resource: object, name: str, _namespace: str) -> JsonObject:
        if name != NAME:
            raise NotFound(name)
        return self.secret

    async def list(self, _resource: object, scope: Scope, *, limit: int) -> Page:
        assert limit == 1
        return Page([{}] if self.sealed and scope.namespace == "fastness-disks" else [], "1")

    async def patch(self, _resource: object, _name: str, patch: Any, *_rest: object) -> JsonObject:
        if self.rival is not None:
            self.secret, self.rival = self.rival, None
            raise Conflict("somebody was faster")
        assert patch["metadata"]["resourceVersion"] == self.secret["metadata"]["resourceVersion"]
        self.secret = {"metadata": {"name": NAME, "resourceVersion": "2"}, "data": patch["data"]}
        return self.secret


async def opened(secrets: Secrets, seed: int = 1) -> Any:
    return await open_vault_secret(cast("Any", secrets), NOW, SeededEntropy(seed))


async def test_the_first_broker_makes_it_and_the_next_opens_what_it_sealed() -> None:
    secrets = Secrets()
    sealed = (await opened(secrets)).seal(b"secret", CONTEXT)
    assert (await opened(secrets, seed=2)).open(sealed, CONTEXT) == b"secret"


async def test_of_two_who_begin_at_once_both_have_the_key_that_was_stored() -> None:
    other = Secrets()
    sealed = (await opened(other, seed=2)).seal(b"secret", CONTEXT)
    secrets = Secrets()
    secrets.rival = other.secret
    assert (await opened(secrets)).open(sealed, CONTEXT) == b"secret"


async def test_an_empty_secret_beside_sealed_data_is_a_lost_key_and_none_is_made() -> None:
    secrets = Secrets(sealed=True)
    with pytest.raises(MissingVaultKey, match="broker-vault is missing, and this store holds sealed data"):
        await opened(secrets)
    assert "data" not in secrets.secret


@pytest.mark.parametrize("text", ["%%%", base64.b64encode(b"{}").decode()])
async def test_a_damaged_ring_is_refused_and_left_as_it_is(text: str) -> None:
    secrets = Secrets()
    secrets.secret = {**secrets.secret, "data": {RING: text}}
    with pytest.raises(DamagedKeyFile):
        await opened(secrets)
    assert secrets.secret["data"] == {RING: text}
