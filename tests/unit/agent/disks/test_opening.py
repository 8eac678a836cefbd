"""Opening: every byte read once, the right key or none, and the kernel does what was meant."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.formatting import format_volume
from fastness.agent.disks.mapping import map_segment
from fastness.agent.disks.opening import open_volume
from fastness.agent.disks.rules import checked_header
from fastness.agent.disks.tables import Target, integrity_target, same_mapping
from fastness.agent.disks.volume import DiskKey, VolumeSettings
from fastness.crypto import volume_keys
from fastness.crypto.secret import SecretBytes
from fastness.formats.luks2.header import HEADER_BYTES
from fastness.formats.luks2.metadata import Integrity
from tests.unit.crypto.seeded import Seeded
from tests.volumes import DISK_BYTES, KEY, NEW_KEY, OTHER_KEY, MemoryDevice, MemoryMapper, changed, volume

FACTS = checked_header(volume()[:HEADER_BYTES], DISK_BYTES).facts

NAMED = f"aes-xts-plain64 :64:logon:fastness:{FACTS.uuid}"


class TwoFacedDevice(MemoryDevice):
    """A host that answers the second read of a place with something else."""

    def __init__(self, first: bytes, then: bytes) -> None:
        super().__init__(first)
        self._then = then

    def read(self, offset: int, length: int) -> bytes:
        again = any(start < offset + length and offset < end for start, end in self.reads)
        data = super().read(offset, length)
        return self._then[offset : offset + length] if again else data


def test_no_byte_is_read_twice() -> None:
    device = MemoryDevice(volume())
    open_volume(device, [OTHER_KEY, NEW_KEY, KEY], FACTS, MemoryMapper(), "v")
    assert all(end <= start for (_, end), (start, _) in pairwise(sorted(device.reads)))


def test_a_host_that_exchanges_the_header_between_two_reads_changes_nothing() -> None:
    null = changed(volume(), lambda document: document["segments"]["0"].update(encryption="cipher_null-ecb"))
    mapper = MemoryMapper()
    opened = open_volume(TwoFacedDevice(volume(), null), [KEY], FACTS, mapper, "v")
    assert opened.facts == FACTS
    assert mapper.tables["v"].parameters.startswith("aes-xts-plain64 :64:logon:")


def test_the_kernel_gets_the_volume_key_by_its_keyring_and_keeps_it_there_no_longer_than_needed() -> None:
    mapper = MemoryMapper()
    open_volume(MemoryDevice(volume()), [KEY], FACTS, mapper, "v")
    description = f"fastness:{FACTS.uuid}"
    assert mapper.tables == {
        "v": Target(0, 2048, "crypt", f"aes-xts-plain64 :64:logon:{description} 0 7:0 2048 1 sector_size:4096")
    }
    assert len(mapper.keys[description]) == 64
    assert mapper.held == []


@pytest.mark.parametrize("keys", [[], [OTHER_KEY], [OTHER_KEY, NEW_KEY]])
def test_keys_of_another_machine_open_nothing(keys: list[DiskKey]) -> None:
    mapper = MemoryMapper()
    with pytest.raises(DiskError, match="opens with the keys") as caught:
        open_volume(MemoryDevice(volume()), keys, FACTS, mapper, "v")
    assert caught.value.code == "key-does-not-open"
    assert mapper.tables == {}


def test_a_token_that_names_another_key_does_not_keep_the_right_one_out() -> None:
    data = changed(volume(), lambda document: document["tokens"]["0"].update(key="k7"))
    assert open_volume(MemoryDevice(data), [KEY], FACTS, MemoryMapper(), "v").key_id == "k1"


def test_a_changed_byte_in_a_slot_opens_nothing() -> None:
    data = bytearray(volume())
    data[HEADER_BYTES + 1000] ^= 1
    with pytest.raises(DiskError) as caught:
        open_volume(MemoryDevice(bytes(data)), [KEY], FACTS, MemoryMapper(), "v")
    assert caught.value.code == "key-does-not-open"


@pytest.mark.parametrize(
    "answer",
    [
        (),
        (Target(0, 2048, "linear", "7:0 2048"),),
        (Target(0, 2048, "crypt", "cipher_null-ecb - 0 7:0 2048"),),
        (Target(0, 2048, "crypt", f"{NAMED} 0 7:1 2048 1 sector_size:4096"),),
        (Target(0, 1024, "crypt", f"{NAMED} 0 7:0 2048 1 sector_size:4096"),),
        (Target(0, 2048, "crypt", f"{NAMED} 0 7:0 2048 2 sector_size:4096 allow_discards"),),
    ],
)  # fmt: skip
def test_a_kernel_that_maps_something_else_is_taken_back(answer: tuple[Target, ...]) -> None:
    mapper = MemoryMapper(lambda target: answer)
    with pytest.raises(DiskError, match="should be crypt") as caught:
        open_volume(MemoryDevice(volume()), [KEY], FACTS, mapper, "v")
    assert caught.value.code == "mapping-differs"
    assert mapper.tables == {}


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "x" * 101, "a/b", "é"])
def test_a_mapping_has_a_plain_name(name: str) -> None:
    with pytest.raises(DiskError, match="no name"):
        open_volume(MemoryDevice(volume()), [KEY], FACTS, MemoryMapper(), name)


@pytest.mark.parametrize("size", [0, 512, HEADER_BYTES - 1])
def test_a_disk_without_room_for_a_header_is_said_to_be_too_small(size: int) -> None:
    with pytest.raises(DiskError) as caught:
        open_volume(MemoryDevice(bytes(size)), [KEY], FACTS, MemoryMapper(), "v")
    assert caught.value.code == "disk-too-small"


def test_a_disk_that_was_cut_behind_the_header_is_refused() -> None:
    with pytest.raises(DiskError) as caught:
        open_volume(MemoryDevice(volume()[: 2**20]), [KEY], FACTS, MemoryMapper(), "v")
    assert caught.value.code == "header-refused"


def test_an_empty_disk_is_refused_and_never_used_as_it_is() -> None:
    mapper = MemoryMapper()
    with pytest.raises(DiskError, match="does not begin as LUKS2") as caught:
        open_volume(MemoryDevice(bytes(DISK_BYTES)), [KEY], FACTS, mapper, "v")
    assert caught.value.code == "header-refused"
    assert mapper.tables == {}


def superblock(provided: int = 512, tag: int = 32, flags: int = 8, log2_block: int = 3) -> bytes:
    head = b"integrt\0" + bytes([4, 15]) + tag.to_bytes(2, "little") + bytes(4)
    return (head + provided.to_bytes(8, "little") + flags.to_bytes(4, "little") + bytes([log2_block])).ljust(
        4096, b"\0"
    )


def tagged(block: bytes, mapper: MemoryMapper) -> None:
    """Map a volume with tags whose superblock is this."""
    segment = checked_header(volume()[:HEADER_BYTES], DISK_BYTES).segment
    segment = replace(segment, integrity=Integrity("hmac(sha256)", "none", "none"))
    device = MemoryDevice(volume()[: 2**20] + block + bytes(2**20 - 4096))
    map_segment(device, segment, SecretBytes(bytes(96)), mapper, "v", FACTS.uuid)


def test_a_volume_with_integrity_is_encryption_over_tags() -> None:
    mapper = MemoryMapper()
    tagged(superblock(), mapper)
    assert mapper.tables == {
        "v_dif": Target(0, 512, "integrity", "7:0 2048 32 J 2 fix_padding block_size:4096"),
        "v": Target(
            0, 512, "crypt",
            f"capi:authenc(hmac(sha256),xts(aes))-plain64 :96:logon:fastness:{FACTS.uuid} 0 7:0 0 2 integrity:32:aead "
            "sector_size:4096",
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    "block",
    [
        bytes(4096), superblock(tag=16), superblock(flags=2), superblock(flags=1), superblock(log2_block=0),
        superblock(provided=0), superblock(provided=4096), superblock(provided=2**63), superblock(provided=511),
    ],
)  # fmt: skip
def test_tags_that_were_never_made_so_are_refused_before_the_kernel_is_asked(block: bytes) -> None:
    mapper = MemoryMapper()
    with pytest.raises(DiskError) as caught:
        tagged(block, mapper)
    assert caught.value.code == "header-refused"
    assert mapper.tables == {}


def test_where_encryption_over_tags_fails_the_tags_are_taken_back() -> None:
    mapper = MemoryMapper(lambda target: (target,) if target.kind == "integrity" else ())
    with pytest.raises(DiskError, match="should be crypt"):
        tagged(superblock(), mapper)
    assert mapper.tables == {}


def test_of_tags_the_kernel_may_say_more_and_nothing_that_weakens_them() -> None:
    meant = integrity_target("7:0", 2**20, 512, 4096)
    more = "journal_sectors:200 interleave_sectors:32768 buffer_sectors:128 journal_watermark:50 commit_time:10000"
    says = replace(meant, parameters=f"7:0 2048 32 J 7 {more} block_size:4096 fix_padding")
    assert same_mapping(meant, (says,))
    for word in ("recalculate", "internal_hash:crc32c", "meta_device:7:1", "allow_discards"):
        assert not same_mapping(meant, (replace(says, parameters=f"{says.parameters} {word}"),))
    assert not same_mapping(meant, (replace(says, parameters=says.parameters.replace(" J ", " D ")),))
    assert not same_mapping(meant, (replace(says, parameters=says.parameters.replace("block_size:4096", "")),))


def test_what_a_volume_key_is_spread_over_gives_it_back_and_a_changed_bit_does_not() -> None:
    for size in (64, 96):
        key = SecretBytes(Seeded().token(size))
        stripes = bytearray(volume_keys.spread(key, Seeded(2)))
        assert volume_keys.gathered(bytes(stripes), size) == key
        stripes[size * 2000] ^= 1
        assert volume_keys.gathered(bytes(stripes), size) != key


@pytest.mark.parametrize("size", [0, 2**20, 2 * 2**20 - 512])
def test_a_disk_without_room_for_a_volume_is_left_as_it_is(size: int) -> None:
    device = MemoryDevice(b"x" * size)
    with pytest.raises(DiskError, match="needs") as caught:
        format_volume(device, KEY.key, KEY.id, VolumeSettings(), Seeded())
    assert caught.value.code == "disk-too-small"
    assert device.data == b"x" * size


def test_a_volume_with_integrity_is_not_made_without_a_mapper_and_no_header_is_left() -> None:
    device = MemoryDevice(bytes(16 * 2**20))
    with pytest.raises(DiskError, match="mapper"):
        format_volume(device, KEY.key, KEY.id, VolumeSettings("hmac-sha256"), Seeded())
    assert not any(device.data[:HEADER_BYTES])


def test_a_disk_whose_end_is_not_a_large_sector_gets_small_ones() -> None:
    device = MemoryDevice(bytes(DISK_BYTES + 512))
    assert format_volume(device, KEY.key, KEY.id, VolumeSettings(), Seeded()).sector_size == 512


@pytest.mark.parametrize(
    ("key_id", "key"), [("k1", b"short"), ("", bytes(32)), ("x" * 65, bytes(32)), ("é", bytes(32))]
)
def test_a_disk_key_is_256_bits_with_a_short_id(key_id: str, key: bytes) -> None:
    with pytest.raises(DiskError, match="32 bytes"):
        DiskKey(key_id, SecretBytes(key))


def test_integrity_is_one_of_two_words() -> None:
    with pytest.raises(DiskError, match="crc32"):
        VolumeSettings("crc32")  # type: ignore[arg-type]


def test_messages_and_views_of_keys_hold_no_key() -> None:
    secret = SecretBytes(b"0123456789abcdefSECRETSECRETxyz!")
    with pytest.raises(DiskError) as caught:
        open_volume(MemoryDevice(volume()), [DiskKey("k1", secret)], FACTS, MemoryMapper(), "v")
    assert "SECRET" not in f"{caught.value!r} {caught.value} {DiskKey('k1', secret)!r}"
