"""Machines whose root the Clevis pin opens: when they get a key, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.crypto.secret import SecretBytes
from fastness.disks.keyring import pin_answer, pin_text
from fastness.disks.told import told_volumes
from fastness.disks.volumes import (
    WEAKER,
    Settings,
    condition_of,
    lacks_key,
    pools_on_open_disks,
    pools_opened_by_clevis,
)
from fastness.formats import json
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine

PIN, AGENT = Settings("root", "none", "Clevis"), Settings("root", "none", "Agent")
ID = "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11"
APPROVED = [{"type": "Approved", "status": "True", "reason": "Automatic"}]


def machine(pin: str = "Clevis", *, approval: str = "Approved", **status: Any) -> Machine:
    spec = {"id": ID, "approval": approval}
    full = {"pin": pin, "pool": "worker", "tee": "tpm", "keyThumbprint": "sha256:" + "0" * 64, "conditions": APPROVED}
    return view({"metadata": {"name": "m", "uid": ID}, "spec": spec, "status": {**full, **status}}, Machine)


def test_a_key_for_the_pin_is_text_of_32_characters_out_of_192_bits() -> None:
    for chance in (bytes(24), b"\xff" * 24, bytes(range(200, 224))):
        text = pin_text(chance)
        assert len(text) == 32
        assert json.decode(pin_answer(SecretBytes(text)).reveal()) == {"key_type": "oct", "key": text.decode()}
    assert len({pin_text(bytes([first, *bytes(23)])) for first in range(256)}) == 256


@pytest.mark.parametrize(
    ("machine", "settings", "due"),
    [
        (machine(), PIN, True),
        (machine(lastAttested="2026-01-01T00:00:00Z"), PIN, True),
        (machine(disks=[{"volume": "root", "state": "Made"}]), PIN, False),
        (machine(), AGENT, False),
        (machine(), Settings("var", "none", "Clevis"), False),
        (machine(), None, False),
        (machine(approval="Quarantined"), PIN, False),
        (machine(""), PIN, True),
        (machine("", lastAttested="2026-01-01T00:00:00Z"), PIN, False),
    ],
)
def test_a_machine_of_the_pin_gets_a_key_while_its_pool_uses_the_pin(
    machine: Machine, settings: Settings | None, due: bool
) -> None:
    assert lacks_key(machine, settings) is due


def test_the_condition_says_how_the_root_stands_and_never_that_it_is_proved() -> None:
    made = machine(disks=[{"volume": "root", "state": "Made", "unlockedAt": "2026-01-01T00:00:00Z"}])
    states = [
        condition_of(machine(), PIN),
        condition_of(made, PIN),
        condition_of(made, AGENT),
        condition_of(made, None),
    ]
    assert [(state.status, state.reason) for state in states if state is not None] == [
        ("False", "NotMadeYet"), ("Unknown", "ClevisPin"), ("False", "PinNotServed"), ("False", "PinNotServed"),
    ]  # fmt: skip
    assert told_volumes(machine()) == (WEAKER,)
    assert told_volumes(made)[-1] == WEAKER
    # A condition has room for 1,024 bytes, and this must not be what is cut off.
    assert all(state is not None and len(state.message) < 1024 for state in states)


def test_pools_of_the_pin_are_counted_apart_from_those_on_open_disks() -> None:
    disk = {"pin": "Clevis", "volume": "root"}
    pools = [{"name": "worker", "trustModel": "ConfidentialCluster", "disk": disk}]
    cluster = {"spec": {"mode": "Enforce", "pools": pools}}
    attested = machine(lastAttested="2026-01-01T00:00:00Z")
    assert pools_on_open_disks(cluster, [attested]) == {}
    assert pools_opened_by_clevis(cluster, [attested]) == {"worker": 1}
    assert pools_opened_by_clevis(cluster, []) == {"worker": 0}
    assert pools_opened_by_clevis({"spec": {"mode": "Enforce"}}, [attested]) == {"worker": 1}
    assert pools_opened_by_clevis({"spec": {"mode": "Enforce"}}, [machine("")]) == {}
