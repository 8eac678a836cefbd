"""All keys of a running cluster are rotated by one verb: what it breaks is said before, and the old ones are gone."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner, Result

from fastness.app.accounts import ACCOUNTS
from fastness.app.keeping.key_rotation import BY_NAME, ROTATED, ROTATIONS, Manner
from fastness.attestation.live.guard_state import NAME as GUARD
from fastness.cli.main import cli
from fastness.keys import legacy_stubs
from fastness.keys.authorities import ROTATE, SECRETS, AuthoritySecret
from fastness.keys.certificates import secret_name
from fastness.keys.keyrings import KeySecret
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kube.port import Cluster
from fastness.machineconfig.trust import image_pull
from fastness.protocol.door import DoorRole
from fastness.record.live.log_key import SECRET as RECORD_KEY
from fastness.release.live.vault_secret import NAME as VAULT
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded

CLOCK, ENTROPY = SystemClock(), SystemEntropy()


async def run(embedded: Embedded, *words: str) -> Result:
    arguments = ["keys", *words, "--kubeconfig", str(embedded.kubeconfig)]
    return await asyncio.to_thread(CliRunner().invoke, cli, arguments)


async def made(cluster: Cluster) -> dict[str, list[str]]:
    """Every key once, as the roles make them; the texts of each ring."""
    for rotation in ROTATIONS:
        await rotation.kind.open(cluster, ENTROPY, CLOCK.now())
    return await held(cluster)


async def held(cluster: Cluster) -> dict[str, list[str]]:
    rings: dict[str, list[str]] = {}
    for rotation in ROTATIONS:
        if isinstance(rotation.kind, KeySecret):
            secret = await cluster.get(SECRETS, rotation.name, NAMESPACE)
            rings[rotation.name] = [key.material.reveal().hex() for key in rotation.kind.read(secret)]
    return rings


async def test_every_key_is_new_and_only_those_that_are_still_needed_stay(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    before = await made(cluster)
    done = await run(embedded_server, "rotate", "--all", "--reason", "a laptop was stolen", "--yes")
    assert done.exit_code == 0, done.output
    after = await held(cluster)
    for name, ring in after.items():
        assert ring[0] not in before[name]
        old_keys = before[name][:1] if BY_NAME[name].manner is Manner.BEGUN else []
        assert ring[1:] == old_keys, name
    for rotation in ROTATIONS:
        secret = await cluster.get(SECRETS, rotation.name, NAMESPACE)
        assert "a laptop was stolen" in secret["metadata"]["annotations"][ROTATED]
        if isinstance(rotation.kind, AuthoritySecret):
            assert ROTATE in secret["metadata"]["annotations"]
            lineage = await rotation.kind.renew(cluster, ENTROPY, CLOCK.now())
            assert lineage.successor is not None
    again = await run(embedded_server, "rotate", "--all", "--reason", "and once more", "--yes")
    assert again.exit_code == 0
    for name, ring in (await held(cluster)).items():
        assert not set(ring) & set(before[name]), name


async def test_what_it_breaks_is_said_before_and_a_dry_run_changes_nothing(embedded_server: Embedded) -> None:
    before = await made(embedded_server.cluster)
    shown_first = await run(embedded_server, "rotate", "--all", "--reason", "x", "--dry-run")
    assert shown_first.exit_code == 0
    assert "tokens of all attested machines" in shown_first.output
    assert shown_first.output.splitlines()[-1] == "nothing was changed"
    unanswered = await run(embedded_server, "rotate", "--all", "--reason", "x")  # nobody answers
    assert unanswered.exit_code != 0
    assert await held(embedded_server.cluster) == before
    listed = json.loads((await run(embedded_server, "list", "-o", "json")).output)
    assert {entry["name"] for entry in listed} == set(BY_NAME)


@pytest.mark.parametrize(
    ("words", "shown_first"),
    [
        (("rotate", "--reason", "x"), "name keys, or say --all"),
        (("rotate", "--all", "token-keys", "--reason", "x"), "name keys, or say --all"),
        (("rotate", "front-door", "--reason", "x"), "there is no key 'front-door'"),
        (("rotate", "--all"), "--reason"),
    ],
)
async def test_a_wrong_wish_is_refused(embedded_server: Embedded, words: tuple[str, ...], shown_first: str) -> None:
    refused = await run(embedded_server, *words)
    assert (refused.exit_code, shown_first in refused.output) == (2, True), refused.output


def test_no_secret_of_a_role_is_forgotten() -> None:
    """Each has a rotation, or is none of the keys that one verb can change."""
    apart = {GUARD, VAULT, RECORD_KEY, legacy_stubs.ISSUED, legacy_stubs.IMPORTED, *map(secret_name, DoorRole)}
    apart.add(image_pull.NAME)  # a login of a registry, which its administrator changes there
    assert {name for role in ACCOUNTS for name in role.secrets} - apart == set(BY_NAME) - {"api-record-key"}
