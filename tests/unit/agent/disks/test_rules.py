"""What may be opened: headers as a host would make them, with checksums that fit and the right key at hand.

The first table is that of headers which cryptsetup 2.6.1 or 2.8.8 open, in clear or with the attacker's key; none needs a secret
to be made.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.keyslots import new_digest, new_slot
from fastness.agent.disks.opening import open_volume
from fastness.agent.disks.rules import checked_header, compare
from fastness.agent.disks.volume import HeaderFacts
from fastness.crypto.secret import SecretBytes
from fastness.formats.luks2.header import HEADER_BYTES, parse_header
from fastness.formats.luks2.metadata import to_json
from tests.unit.crypto.seeded import Seeded
from tests.volumes import (
    COPY,
    DISK_BYTES,
    KEY,
    Json,
    MemoryDevice,
    MemoryMapper,
    changed,
    sequenced,
    text_of,
    volume,
    with_binary,
    with_text,
)

NULL = "cipher_null-ecb"
SLOT = 258048


def refused(data: bytes, expect: HeaderFacts | None = None) -> DiskError:
    """How opening refuses, with nothing mapped."""
    mapper = MemoryMapper()
    with pytest.raises(DiskError) as caught:
        open_volume(MemoryDevice(data), [KEY], expect, mapper, "v")
    assert mapper.tables == {}
    assert mapper.keys == {}, "no key reaches the kernel for a header that is refused"
    return caught.value


def put(path: str, value: object) -> Callable[[Json], None]:
    """A change of one member."""
    *parents, name = path.split(".")

    def change(document: Json) -> None:
        for parent in parents:
            document = document[parent]
        document[name] = value

    return change


def assert_refused(data: bytes, reason: str) -> None:
    error = refused(data)
    assert error.code == "header-refused"
    assert reason in error.message
    assert error.hint


def test_the_volume_that_all_of_these_are_made_from_opens() -> None:
    mapper = MemoryMapper()
    opened = open_volume(MemoryDevice(volume()), [KEY], None, mapper, "v")
    assert (opened.path, opened.key_id, opened.facts.cipher) == ("/dev/mapper/v", "k1", "aes-xts-plain64")


@pytest.mark.parametrize(
    "cipher", [NULL, "capi:ecb(cipher_null)-plain64", "null", "capi:xts(aes)-plain64", "aes-ecb", "aes-xts-plain"]
)
def test_a_segment_under_a_null_cipher_or_any_other_name_is_refused(cipher: str) -> None:
    assert_refused(changed(volume(), put("segments.0.encryption", cipher)), "segments.0.encryption")


def attackers_slot(cipher: str) -> Callable[[Json], None]:
    """A slot and a digest for a volume key that the attacker chose; under a null cipher its bytes need no key."""
    volume_key = SecretBytes(b"attacker".ljust(64, b"."))
    slot, _ = new_slot(volume_key, SecretBytes(bytes(32)), HEADER_BYTES, Seeded())
    metadata = parse_header(volume()[:HEADER_BYTES]).whole[0].metadata
    made = to_json(replace(metadata, keyslots={0: slot}, digests={0: new_digest(volume_key, 0, Seeded())}))

    def change(document: Json) -> None:
        document["keyslots"] = made["keyslots"]
        document["digests"] = made["digests"]
        document["keyslots"]["0"]["area"]["encryption"] = cipher

    return change


def test_cve_2025_59054_a_slot_under_a_null_cipher_with_the_hosts_volume_key_is_refused() -> None:
    assert_refused(changed(volume(), attackers_slot(NULL)), "keyslots.0.area.encryption")


def test_cve_2025_58356_a_null_cipher_in_slot_and_segment_is_refused() -> None:
    data = changed(changed(volume(), attackers_slot(NULL)), put("segments.0.encryption", NULL))
    assert_refused(data, "cipher_null-ecb")


def test_a_slot_with_the_hosts_volume_key_does_not_open_with_ours() -> None:
    assert refused(changed(volume(), attackers_slot("aes-xts-plain64"))).code == "key-does-not-open"


def test_a_linear_segment_is_refused_although_the_digest_names_it() -> None:
    def change(document: Json) -> None:
        document["segments"]["0"] = {"type": "linear", "offset": document["segments"]["0"]["offset"], "size": "dynamic"}

    assert_refused(changed(volume(), change), "segments.0.type is 'linear'")


def test_a_second_copy_with_a_null_cipher_and_a_higher_number_is_refused() -> None:
    data = changed(volume(), put("segments.0.encryption", NULL), copies=(1,))
    assert_refused(sequenced(data, 1, 1), "segments.0.encryption")
    assert_refused(data, "segments.0.encryption")


def test_a_second_copy_with_a_null_cipher_beside_a_broken_first_is_refused() -> None:
    data = bytearray(changed(volume(), put("segments.0.encryption", NULL), copies=(1,)))
    data[5000] ^= 1
    assert_refused(bytes(data), "segments.0.encryption")


def test_encryption_twice_in_one_object_is_refused() -> None:
    text = json.dumps(text_of(volume())["segments"]["0"]).encode()
    again = text.replace(b'"encryption"', b'"encryption": "cipher_null-ecb", "encryption"')
    whole = json.dumps(text_of(volume())).encode().replace(text, again)
    assert_refused(with_text(with_text(volume(), whole, 0), whole, 1), "stands twice")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("segments.0.offset", str(2**20 + 4096)), "disk-exchanged"),
        (put("segments.0.size", str(512 * 1024)), "disk-exchanged"),
        (put("segments.0.flags", ["allow-discards"]), "segments.0.flags"),
        (put("config.flags", ["allow-discards"]), "config.flags"),
        (put("segments.0.unknown", 1), "unknown"),
        (put("segments.1", {"type": "linear", "offset": "0", "size": "4096"}), "segments are 2"),
        (put("segments.0.iv_tweak", "8"), "tweak"),
        (put("segments.0.sector_size", 1024), "sectors of 1024"),
        (put("config.requirements", {"mandatory": ["online-reencrypt-v2"]}), "config.requirements"),
        (put("config.requirements", {"mandatory": ["something-new"]}), "config.requirements"),
    ],
)
def test_what_others_open_with_a_changed_segment_or_flag_is_refused(
    change: Callable[[Json], None], reason: str
) -> None:
    expect = checked_header(volume()[:HEADER_BYTES], DISK_BYTES).facts
    error = refused(changed(volume(), change), expect)
    assert reason in (error.code, *error.message.split()) or reason in error.message


@pytest.mark.parametrize("kind", ["argon2i", "argon2id"])
def test_argon2_is_refused_whatever_memory_it_asks_for(kind: str) -> None:
    kdf = {"type": kind, "time": 4, "memory": 4 * 1024**2, "cpus": 4, "salt": base64.b64encode(bytes(32)).decode()}
    assert_refused(changed(volume(), put("keyslots.0.kdf", kdf)), f"keyslots.0.kdf is {kind}")


@pytest.mark.parametrize("iterations", [0, 1, 999, 100_001, 2**32 - 1])
@pytest.mark.parametrize("path", ["keyslots.0.kdf.iterations", "digests.0.iterations"])
def test_iterations_beyond_the_bounds_are_refused_before_any_is_computed(path: str, iterations: int) -> None:
    assert_refused(changed(volume(), put(path, iterations)), f"{path} is {iterations}")


def test_thirty_two_slots_in_one_area_are_refused() -> None:
    def change(document: Json) -> None:
        document["keyslots"] = {str(number): document["keyslots"]["0"] for number in range(32)}
        document["digests"]["0"]["keyslots"] = [str(number) for number in range(32)]

    assert_refused(changed(volume(), change), "keyslots are 32")


def test_nine_slots_are_more_than_a_volume_has() -> None:
    def change(document: Json) -> None:
        document["keyslots"] = {str(number): document["keyslots"]["0"] for number in range(9)}
        document["digests"]["0"]["keyslots"] = [str(number) for number in range(9)]

    assert_refused(changed(volume(), change), "keyslots are 9")


def second_slot(offset: int) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        document["keyslots"]["1"] = json.loads(json.dumps(document["keyslots"]["0"]))
        document["keyslots"]["1"]["area"]["offset"] = str(offset)
        document["digests"]["0"]["keyslots"] = ["0", "1"]

    return change


@pytest.mark.parametrize("offset", [HEADER_BYTES, HEADER_BYTES + 4096, HEADER_BYTES + SLOT - 4096])
def test_slots_that_overlap_are_refused(offset: int) -> None:
    assert_refused(changed(volume(), second_slot(offset)), "overlaps the area of slot")


@pytest.mark.parametrize(
    "offset", [0, COPY, HEADER_BYTES - 4096, 2**20 - 4096, 2**20, 2**40, HEADER_BYTES + SLOT + 512]
)
def test_a_slot_over_the_header_the_data_or_beyond_the_disk_is_refused(offset: int) -> None:
    assert_refused(changed(volume(), second_slot(offset)), "keyslots.1.area")


@pytest.mark.parametrize("offset", [0, HEADER_BYTES, 2**20 - 4096, 2**20 + 512, DISK_BYTES, 2**63])
def test_a_segment_over_the_slots_or_beyond_the_disk_is_refused(offset: int) -> None:
    assert_refused(changed(volume(), put("segments.0.offset", str(offset))), "segments.0")


@pytest.mark.parametrize("size", [0, 100, 2**20 + 4096, 2**63])
def test_a_segment_whose_size_does_not_fit_is_refused(size: int) -> None:
    assert_refused(changed(volume(), put("segments.0.size", str(size))), "segments.0 lies from")


def test_overlapping_segments_are_refused() -> None:
    assert_refused(
        changed(volume(), lambda document: document["segments"].update({"1": document["segments"]["0"]})),
        "segments are 2",
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("keyslots.0.key_size", 32),
        ("keyslots.0.key_size", 96),
        ("keyslots.0.area.key_size", 32),
        ("keyslots.0.area.encryption", "aes-ecb"),
        ("keyslots.0.area.size", "4096"),
        ("keyslots.0.area.size", str(2**21)),
        ("keyslots.0.af.stripes", 1),
        ("keyslots.0.af.hash", "md5"),
        ("keyslots.0.kdf.hash", "md5"),
        ("digests.0.hash", "md5"),
        ("digests.0.digest", "AAAA"),
        ("digests.0.segments", []),
        ("digests.0.keyslots", []),
        ("digests", {}),
        ("keyslots", {}),
        ("segments", {}),
        ("config.json_size", "16384"),
        ("config.keyslots_size", "0"),
        ("config.keyslots_size", str(32 * 2**20)),
        ("config.keyslots_size", "5000"),
    ],
)
def test_slots_and_digests_are_exactly_of_the_kind_that_is_opened(path: str, value: object) -> None:
    assert_refused(changed(volume(), put(path, value)), path.split(".")[0])


INTEGRITY = {"type": "hmac(sha256)", "journal_encryption": "none", "journal_integrity": "none"}


@pytest.mark.parametrize(
    "integrity",
    [
        INTEGRITY | {"type": "aead"},
        INTEGRITY | {"type": "crc32c"},
        INTEGRITY | {"journal_encryption": "ctr(aes)"},
        INTEGRITY | {"journal_integrity": "hmac(sha256)"},
        INTEGRITY | {"key_size": 16},
        INTEGRITY,
    ],
)
def test_integrity_is_the_one_kind_and_its_key_has_its_size(integrity: Json) -> None:
    assert refused(changed(volume(), put("segments.0.integrity", integrity))).code == "header-refused"


@pytest.mark.parametrize(
    "token",
    [
        {"type": "clevis", "keyslots": ["0"], "jwe": {}},
        {"type": "luks2-keyring", "keyslots": ["0"], "key_description": "x"},
        {"type": "fastness", "keyslots": ["0"]},
        {"type": "fastness", "keyslots": ["0"], "key": 1},
        {"type": "fastness", "keyslots": ["0"], "key": "x" * 65},
        {"type": "fastness", "keyslots": ["0"], "key": "k1", "more": 1},
        {"type": "fastness", "keyslots": ["5"], "key": "k1"},
        {"type": "fastness", "keyslots": [], "key": "k1"},
    ],
)
def test_tokens_that_are_not_ours_are_refused(token: Json) -> None:
    assert_refused(changed(volume(), put("tokens.0", token)), "tokens.0")


def test_two_tokens_for_one_slot_are_refused() -> None:
    token = {"type": "fastness", "keyslots": ["0"], "key": "k2"}
    assert_refused(changed(volume(), put("tokens.1", token)), "two keys for one slot")


def test_wrong_checksums_of_both_copies_are_no_header() -> None:
    data = bytearray(volume())
    data[5000] ^= 1
    data[COPY + 5000] ^= 1
    assert_refused(bytes(data), "checksum")


@pytest.mark.parametrize("position", [0, 1])
def test_one_torn_copy_leaves_a_volume_that_opens(position: int) -> None:
    data = bytearray(volume())
    data[position * COPY + 5000] ^= 1
    assert open_volume(MemoryDevice(bytes(data)), [KEY], None, MemoryMapper(), "v").key_id == "k1"


def test_a_header_of_16_mib_is_refused_by_its_size() -> None:
    data = volume()
    for position in (0, 1):
        data = with_binary(data, position, 8, (16 * 1024**2).to_bytes(8, "big"))
    assert_refused(data, "claims 16777216 bytes")


@pytest.mark.parametrize("ahead", [2, 100])
def test_copies_that_are_more_than_a_step_apart_are_refused(ahead: int) -> None:
    assert_refused(sequenced(volume(), 1, ahead), "steps away")


def test_copies_of_one_number_that_differ_are_refused() -> None:
    data = changed(volume(), lambda document: document["tokens"].clear(), copies=(1,))
    assert_refused(data, "differs from the first")


@pytest.mark.parametrize(
    "change", [put("segments.0.size", str(512 * 1024)), put("config.keyslots_size", str(600 * 1024 // 4096 * 4096))]
)
def test_copies_a_step_apart_differ_in_slots_alone(change: Callable[[Json], None]) -> None:
    assert_refused(sequenced(changed(volume(), change, copies=(1,)), 1, 1), "describes another volume")


def test_copies_with_two_identities_are_refused() -> None:
    data = with_binary(volume(), 1, 168, b"00000000-0000-4000-8000-000000000000")
    assert_refused(data, "describes another volume")


def test_a_sequence_number_at_the_end_of_its_range_is_refused() -> None:
    data = volume()
    for position in (0, 1):
        data = with_binary(data, position, 16, (2**64 - 1).to_bytes(8, "big"))
    assert_refused(data, "sequence number")


def test_a_header_of_another_volume_is_named_with_what_differs() -> None:
    facts = checked_header(volume()[:HEADER_BYTES], DISK_BYTES).facts
    compare(facts, facts)
    error = refused(volume(), replace(facts, uuid="00000000-0000-4000-8000-000000000000"))
    assert error.code == "disk-exchanged"
    assert f"uuid is {facts.uuid}, recorded 00000000" in error.message


@pytest.mark.parametrize(
    "other", [{"cipher": "x"}, {"integrity": "hmac-sha256"}, {"sector_size": 512}, {"segments_digest": "sha256:00"}]
)
def test_every_recorded_fact_is_compared(other: Json) -> None:
    facts = checked_header(volume()[:HEADER_BYTES], DISK_BYTES).facts
    assert refused(volume(), replace(facts, **other)).code == "disk-exchanged"


def test_the_recorded_digest_covers_the_volume_key_and_not_the_slots() -> None:
    facts = checked_header(volume()[:HEADER_BYTES], DISK_BYTES).facts
    tokens = changed(volume(), lambda document: document["tokens"].clear())
    assert checked_header(tokens[:HEADER_BYTES], DISK_BYTES).facts == facts
    digest = base64.b64encode(bytes(32)).decode()
    other = changed(volume(), put("digests.0.digest", digest))
    assert checked_header(other[:HEADER_BYTES], DISK_BYTES).facts.segments_digest != facts.segments_digest


def test_facts_travel_as_json_and_nothing_else_is_taken_for_them() -> None:
    facts = checked_header(volume()[:HEADER_BYTES], DISK_BYTES).facts
    document = facts.to_json()
    assert set(document) == {"uuid", "cipher", "integrity", "sectorSize", "segmentsDigest"}
    assert HeaderFacts.from_json(document) == facts
    for bad in ({}, document | {"sectorSize": "4096"}, document | {"more": 1}):
        with pytest.raises(DiskError, match="recorded"):
            HeaderFacts.from_json(bad)
