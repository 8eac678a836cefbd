"""Which volumes a machine has is in its image: read strictly, and never nothing by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.boot.volumes import BadVolumes, load_volumes, state_of


def test_an_image_without_the_file_has_no_volumes(tmp_path: Path) -> None:
    assert load_volumes(tmp_path / "volumes.json") == {}


def test_an_image_names_the_device_of_each_volume(tmp_path: Path) -> None:
    place = tmp_path / "volumes.json"
    place.write_text('{"var": "/dev/disk/by-partlabel/fastness-var"}')
    assert load_volumes(place) == {"var": Path("/dev/disk/by-partlabel/fastness-var")}


@pytest.mark.parametrize(
    "content",
    [
        "", "{}", "[]", '{"var": 1}', '{"var": "/etc/passwd"}', '{"var": "/dev/../etc/passwd"}', '{"Var": "/dev/vda"}',
        '{"../x": "/dev/vda"}', '{"var": "/dev/vda", "var": "/dev/vdb"}', '{"var": "/dev/vda", "root": "/dev/vda"}',
        '{"var": "/dev/v\\nda"}', "x" * 20000,
    ],
)  # fmt: skip
def test_a_table_that_says_anything_else_stops_the_boot(tmp_path: Path, content: str) -> None:
    place = tmp_path / "volumes.json"
    place.write_text(content)
    with pytest.raises(BadVolumes):
        load_volumes(place)


def test_the_agents_own_files_are_where_the_system_has_them() -> None:
    assert state_of("var") == "lib/fastness"
    assert state_of("root") == "var/lib/fastness"
