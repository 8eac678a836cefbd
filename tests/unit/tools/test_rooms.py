"""Every package of a room touches the world under one of three names, or is held to be pure by the rules of imports."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "fastness"
WORLD = frozenset({"live", "loops", "door"})
ROOMS = (
    "record",
    "images",
    "pools",
    "attestation",
    "enrolment",
    "release",
    "machineconfig",
    "builds",
    "workloads",
    "admission",
)


def pure() -> frozenset[str]:
    """What the contract about decisions names."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [listed] = [each["source_modules"] for each in contracts if each["name"].endswith("Decisions are pure")]
    return frozenset(listed)


def parts(room: str) -> list[str]:
    """The packages and modules directly in a room."""
    packages = [path.parent.name for path in (SOURCE / room).glob("*/__init__.py")]
    return sorted({*packages, *(path.stem for path in (SOURCE / room).glob("*.py") if path.stem != "__init__")})


@pytest.mark.parametrize("room", ROOMS)
def test_what_does_not_touch_the_world_is_pure(room: str) -> None:
    assert [part for part in parts(room) if part not in WORLD and f"fastness.{room}.{part}" not in pure()] == []


def test_the_rule_names_what_exists() -> None:
    assert [name for name in sorted(pure()) if not _exists(name)] == []


def _exists(name: str) -> bool:
    place = ROOT.joinpath("src", *name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()
