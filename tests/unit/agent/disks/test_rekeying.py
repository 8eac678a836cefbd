"""A new key for a volume, and power cuts at every write of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.formatting import format_volume
from fastness.agent.disks.opening import read_volume, unlock
from fastness.agent.disks.rekeying import rekey_volume
from fastness.agent.disks.volume import DiskKey, VolumeSettings
from fastness.crypto.secret import SecretBytes
from fastness.formats.luks2.header import HEADER_BYTES, parse_header
from tests.unit.crypto.seeded import Seeded
from tests.volumes import COPY, DISK_BYTES, KEY, NEW_KEY, OTHER_KEY, MemoryDevice, changed, sequenced, volume

FACTS = read_volume(MemoryDevice(volume()), None).checked.facts
KEYS = [NEW_KEY, KEY]


class PowerCut(Exception):
    """The plug was pulled."""


class CutDevice(MemoryDevice):
    """A disk whose power is cut at a write; what was not flushed is lost, torn, or there, as the disk pleases."""

    def __init__(self, data: bytes, writes: int | None, fate: str) -> None:
        super().__init__(data)
        self._left = writes
        self._fate = fate
        self._pending: list[tuple[int, bytes, bytes]] = []
        self.count = 0

    def write(self, offset: int, data: bytes) -> None:
        self.count += 1
        self._pending.append((offset, bytes(self.data[offset : offset + len(data)]), data))
        super().write(offset, data)
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self._cut()
                raise PowerCut

    def flush(self) -> None:
        self._pending.clear()

    def _cut(self) -> None:
        for offset, before, _ in reversed(self._pending):
            if self._fate == "lost":
                self.data[offset : offset + len(before)] = before
        if self._fate == "torn":
            offset, before, _ = self._pending[-1]
            middle = len(before) // 2 // 512 * 512
            self.data[offset + middle : offset + len(before)] = before[middle:]
            # Disks may store the sectors of a write in any order.
            if len(self._pending) > 1:
                offset, before, _ = self._pending[0]
                self.data[offset : offset + len(before)] = before


def opens(data: bytes, keys: list[DiskKey]) -> str:
    """The id of the key by which a volume opens."""
    return unlock(read_volume(MemoryDevice(data), FACTS), keys).key.id


def assert_only(data: bytes, key: DiskKey) -> None:
    """Exactly one slot is left, of this key; both copies agree; the rest of the space for slots is empty."""
    copy = read_volume(MemoryDevice(data), FACTS)
    assert copy.checked.settled
    assert unlock(copy, [key]).key == key
    (number,) = copy.checked.metadata.keyslots
    assert copy.checked.key_ids == {number: key.id}
    area = copy.checked.metadata.keyslots[number].area
    assert not any(data[HEADER_BYTES : area.offset])
    assert not any(data[area.end : 2**20])


def test_the_new_key_is_the_only_one_that_opens_and_the_volume_is_the_same() -> None:
    device = MemoryDevice(volume())
    before = unlock(read_volume(device, FACTS), [KEY]).volume_key
    assert rekey_volume(device, KEYS, FACTS, Seeded()) == "k2"
    assert_only(bytes(device.data), NEW_KEY)
    assert unlock(read_volume(device, FACTS), [NEW_KEY]).volume_key == before
    with pytest.raises(DiskError) as caught:
        opens(bytes(device.data), [KEY])
    assert caught.value.code == "key-does-not-open"


def test_data_is_not_touched() -> None:
    data = volume()[: 2**20] + Seeded(9).token(2**20)
    device = MemoryDevice(data)
    rekey_volume(device, KEYS, FACTS, Seeded())
    assert device.data[2**20 :] == data[2**20 :]


@pytest.mark.parametrize("keys", [[KEY], [KEY, OTHER_KEY], [KEY, NEW_KEY]])
def test_where_the_key_is_the_only_one_already_nothing_is_written(keys: list[DiskKey]) -> None:
    device = CutDevice(volume(), 0, "lost")
    assert rekey_volume(device, keys, FACTS, Seeded()) == "k1"
    assert device.data == volume()


def test_repeating_it_writes_nothing() -> None:
    device = MemoryDevice(volume())
    rekey_volume(device, KEYS, FACTS, Seeded())
    again = CutDevice(bytes(device.data), 0, "lost")
    assert rekey_volume(again, KEYS, FACTS, Seeded()) == "k2"
    assert again.data == device.data


def cuts() -> Iterator[tuple[int, str]]:
    device = CutDevice(volume(), None, "lost")
    rekey_volume(device, KEYS, FACTS, Seeded())
    assert device.count > 5
    return ((number, fate) for number in range(device.count) for fate in ("lost", "torn", "stored"))


@pytest.mark.parametrize(("number", "fate"), list(cuts()))
def test_a_power_cut_at_any_write_leaves_a_volume_that_opens_and_the_next_run_ends_it(number: int, fate: str) -> None:
    device = CutDevice(volume(), number, fate)
    with pytest.raises(PowerCut):
        rekey_volume(device, KEYS, FACTS, Seeded())
    assert opens(bytes(device.data), KEYS) in ("k1", "k2")
    after = MemoryDevice(bytes(device.data))
    assert rekey_volume(after, KEYS, FACTS, Seeded(3)) == "k2"
    assert_only(bytes(after.data), NEW_KEY)


@pytest.mark.parametrize(("first", "fate"), [(0, "torn"), (1, "stored"), (2, "torn"), (2, "lost"), (3, "torn")])
def test_six_power_cuts_in_a_row_fill_no_slots_and_lose_no_key(first: int, fate: str) -> None:
    data = volume()
    for number in range(6):
        device = CutDevice(data, first + number % 3, fate)
        with suppress(PowerCut):
            rekey_volume(device, KEYS, FACTS, Seeded(number))
        data = bytes(device.data)
        assert opens(data, KEYS)
    after = MemoryDevice(data)
    rekey_volume(after, KEYS, FACTS, Seeded(7))
    assert_only(bytes(after.data), NEW_KEY)


def test_a_cut_run_is_ended_by_a_run_for_a_newer_key() -> None:
    newer = DiskKey("k3", SecretBytes(bytes([3]) * 32))
    for number in range(5):
        device = CutDevice(volume(), number, "stored")
        with pytest.raises(PowerCut):
            rekey_volume(device, KEYS, FACTS, Seeded())
        after = MemoryDevice(bytes(device.data))
        assert rekey_volume(after, [newer, NEW_KEY, KEY], FACTS, Seeded(3)) == "k3"
        assert_only(bytes(after.data), newer)


@pytest.mark.parametrize("torn", [0, 1])
@pytest.mark.parametrize("number", [0, 1])
def test_the_only_whole_copy_is_never_written_first(torn: int, number: int) -> None:
    data = bytearray(volume())
    data[torn * COPY + 5000] ^= 1
    device = CutDevice(bytes(data), number, "torn")
    with pytest.raises(PowerCut):
        rekey_volume(device, KEYS, FACTS, Seeded())
    assert opens(bytes(device.data), KEYS) == "k1"


def test_a_copy_a_step_behind_is_written_first_and_numbers_go_up() -> None:
    data = sequenced(changed(volume(), lambda document: document["tokens"].clear(), copies=(0,)), 0, 1)
    device = CutDevice(data, 1, "lost")
    with pytest.raises(PowerCut):
        rekey_volume(device, KEYS, FACTS, Seeded())
    copies = parse_header(bytes(device.data[:HEADER_BYTES])).copies
    assert [copy and copy.binary.sequence for copy in copies] == [2, 3]


def test_slots_that_nobody_opens_are_cleared_before_one_is_added() -> None:
    device = MemoryDevice(volume())
    for number in range(2):
        cut = CutDevice(bytes(device.data), 2 if number == 0 else 4, "stored")
        with pytest.raises(PowerCut):
            rekey_volume(cut, [DiskKey(f"lost{number}", SecretBytes(bytes([9 + number]) * 32)), KEY], FACTS, Seeded())
        device = MemoryDevice(bytes(cut.data))
    assert len(read_volume(device, FACTS).checked.metadata.keyslots) == 2
    assert rekey_volume(device, KEYS, FACTS, Seeded()) == "k2"
    assert_only(bytes(device.data), NEW_KEY)


def test_a_key_that_opens_nothing_changes_nothing() -> None:
    device = CutDevice(volume(), 0, "stored")
    with pytest.raises(DiskError) as caught:
        rekey_volume(device, [NEW_KEY, OTHER_KEY], FACTS, Seeded())
    assert caught.value.code == "key-does-not-open"
    assert device.data == volume()


def test_a_header_that_is_refused_or_of_another_volume_is_not_written_to() -> None:
    null = changed(volume(), lambda document: document["segments"]["0"].update(encryption="cipher_null-ecb"))
    other = MemoryDevice(bytes(DISK_BYTES))
    format_volume(other, KEY.key, KEY.id, VolumeSettings(), Seeded(5))
    for data, code in ((null, "header-refused"), (bytes(other.data), "disk-exchanged")):
        device = CutDevice(data, 0, "stored")
        with pytest.raises(DiskError) as caught:
            rekey_volume(device, KEYS, FACTS, Seeded())
        assert caught.value.code == code


def test_a_disk_that_forgets_the_new_slot_keeps_the_old_one() -> None:
    class Forgetful(MemoryDevice):
        """A disk that says it wrote, and did not."""

        def write(self, offset: int, data: bytes) -> None:
            if offset < HEADER_BYTES:
                super().write(offset, data)

    device = Forgetful(volume())
    with pytest.raises(DiskError) as caught:
        rekey_volume(device, KEYS, FACTS, Seeded())
    assert caught.value.code == "key-does-not-open"
    assert opens(bytes(device.data), [KEY]) == "k1"


def test_without_a_gap_for_a_second_slot_it_says_so() -> None:
    def change(document: dict[str, dict[str, str]]) -> None:
        document["config"]["keyslots_size"] = str(258048)

    data = changed(volume(), change)
    device = MemoryDevice(data)
    with pytest.raises(DiskError) as caught:
        rekey_volume(device, KEYS, FACTS, Seeded())
    assert caught.value.code == "no-room-for-slot"
    assert opens(bytes(device.data), [KEY]) == "k1"


@pytest.mark.parametrize("keys", [[], [KEY, DiskKey("k1", NEW_KEY.key)]])
def test_keys_must_have_different_ids(keys: list[DiskKey]) -> None:
    with pytest.raises(DiskError, match="different ids"):
        rekey_volume(MemoryDevice(volume()), keys, FACTS, Seeded())
