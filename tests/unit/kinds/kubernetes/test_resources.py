"""What machines and clients spell out of native kinds is what the table says of them."""

from __future__ import annotations

from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes import resources
from fastness.kinds.registry import find


def test_what_is_spelled_out_is_what_the_table_says() -> None:
    spelled = [value for value in vars(resources).values() if isinstance(value, Resource)]
    assert len(spelled) == 5
    for resource in spelled:
        assert find(resource.group, resource.version, resource.plural).resource == resource
