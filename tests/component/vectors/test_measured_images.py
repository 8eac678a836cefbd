"""Lists of measurements that others computed read as manifests, and agree with ours where both know the event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastness.images.errors import BadManifest
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.images.measurement import Measurement, parse_manifest
from fastness.images.uki import write_uki
from tests.evidence.vectors import vectors
from tests.measuredboot import minted

REGISTERS = 14


def manifests() -> dict[Path, Measurement]:
    texts = {}
    for path in sorted((vectors() / "pcrs").glob("*/*.json")):
        value = json.loads(path.read_text())
        texts[path] = parse_manifest(value if "pcrs" in value else {"pcrs": [value]})
    return texts


def test_every_list_reads_and_ends_in_its_registers() -> None:
    texts = manifests()
    assert sum(len(measurement.registers) for measurement in texts.values()) >= REGISTERS
    assert all(measurement.events for measurement in texts.values())


def test_a_list_with_one_changed_digest_is_refused() -> None:
    for path, measurement in manifests().items():
        manifest = measurement.to_manifest()
        digest = manifest["pcrs"][-1]["events"][-1]["hash"]
        manifest["pcrs"][-1]["events"][-1]["hash"] = digest[:-1] + ("0" if digest[-1] != "0" else "1")
        with pytest.raises(BadManifest, match="do not end"):
            parse_manifest(manifest)
        assert path.exists()


@pytest.mark.parametrize("image", ["fedora-42-ovmf", "rhel-9.6-ovmf"])
def test_events_that_do_not_depend_on_the_image_are_the_same(image: str) -> None:
    uki = write_uki(minted.stub(), minted.sections())
    ours = measure_uki(uki, FirmwareVars.blank(), secure_boot=False)
    named = {event.id: event.digest for event in ours.events}
    folder = vectors() / "pcrs" / image
    theirs = [
        event
        for name in ("pcr4.json", "pcr7-sb-disabled.json")
        for event in parse_manifest({"pcrs": [json.loads((folder / name).read_text())]}).events
    ]
    common = [event for event in theirs if event.id in named]
    assert len(common) == 8, "two of the boot path, Secure Boot and its four empty variables, a separator"
    assert {event.id: event.digest for event in common} == {event.id: named[event.id] for event in common}
