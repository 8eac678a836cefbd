"""The handshake over TLS: what a guest of the field sends and gets."""

from __future__ import annotations

from tests.component.broker.world import World


async def test_a_machine_attests_and_reads_its_own_secret_sealed_to_its_key(here: World) -> None:
    guest = await here.guest()
    await here.put(f"machine/{guest.who.machine}/disk-key", b"correct horse")
    assert (await guest.attest()).status_code == 200
    assert await guest.read(f"machine/{guest.who.machine}/disk-key") == b"correct horse"
    released = [entry for entry in here.ledger.entries if entry.what == "release"]
    assert [(entry.who, entry.resource, entry.verdict) for entry in released] == [
        (guest.who.thumbprint, f"machine/{guest.who.machine}/disk-key", "verdict-1")
    ]


async def test_whoever_attested_reads_success(here: World) -> None:
    guest = await here.guest()
    await guest.attest()
    assert await guest.read("default/attestation-status/status") == b"success"
