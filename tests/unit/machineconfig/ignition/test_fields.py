"""The field table: complete and consistent."""

import pytest

from fastness.machineconfig.ignition.fields import SPEC_2, SPEC_3, VALUE, Field, Kind
from fastness.machineconfig.ignition.shape import Shape, shape_of
from fastness.protocol.ignition_spec import CURRENT, SPEC3, minor


@pytest.mark.parametrize("table", [SPEC_2, SPEC_3], ids=["spec 2", "spec 3"])
def test_every_struct_is_defined_and_used(table: dict[str, dict[str, Field]]) -> None:
    used = {field.struct for fields in table.values() for field in fields.values() if field.struct}
    assert used | {"Config"} == set(table)


def test_keys_name_a_field_of_the_entry() -> None:
    for fields in SPEC_3.values():
        for name, field in fields.items():
            if field.kind is Kind.OBJECTS and field.key.isalpha():
                assert SPEC_3[field.struct][field.key].kind is Kind.STRING, name
            if field.kind is Kind.STRINGS:
                assert field.key in ("", VALUE)


def test_lists_on_the_way_to_entries_all_have_keys() -> None:
    # Merging keeps these indexed by key; a list without one would need another way.
    queue: list[Shape] = [shape_of(CURRENT)]
    while queue:
        for _, kind, field, inner in queue.pop().fields.values():
            if kind is Kind.OBJECT:
                queue.append(inner)
            elif kind in (Kind.OBJECTS, Kind.STRINGS):
                assert field.key


def test_each_version_adds_fields_and_takes_none_away() -> None:
    counts = [sum(field.since <= minor(version) for s in SPEC_3.values() for field in s.values()) for version in SPEC3]
    assert counts == sorted(counts)
    added: dict[int, list[str]] = {}
    for struct, fields in sorted(SPEC_3.items()):
        for name, field in sorted(fields.items()):
            added.setdefault(field.since, []).append(f"{struct}.{name}")
    del added[0]
    assert added == {
        1: [
            "Filesystem.mountOptions",
            "Ignition.proxy",
            "Reference.compression",
            "Reference.httpHeaders",
            "Resource.httpHeaders",
        ],
        2: ["Group.shouldExist", "Partition.resize", "Storage.luks", "User.shouldExist"],
        3: ["Config.kernelArguments"],
        4: ["Luks.discard", "Luks.openOptions", "Tang.advertisement"],
        5: ["Luks.cex"],
    }
