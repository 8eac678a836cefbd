"""What a role of `fastness serve` loads: each is a process of its own, and what it loads is its start and its memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fastness.app.doors import ROOMS
from fastness.app.parts import Part

LOADED = """
import sys
import fastness.cli.run.serve, fastness.cli.run.replica_process
from fastness.app.doors import load_rooms
from fastness.app.parts import Part
load_rooms([Part(sys.argv[1])])
print(*sys.modules)
"""


def loaded_by(part: Part) -> set[str]:
    done = subprocess.run([sys.executable, "-c", LOADED, part], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("part", [Part.GATE, Part.WEBHOOK])
def test_a_role_loads_its_own_door_and_neither_another_nor_the_controllers(part: Part) -> None:
    loaded = loaded_by(part)
    assert ROOMS[part] in loaded
    assert not {room for other, room in ROOMS.items() if other is not part} & loaded
    assert "fastness.builds.live.builder" not in loaded, "only controllers build"


def test_every_part_has_a_room() -> None:
    assert ROOMS.keys() == set(Part)
