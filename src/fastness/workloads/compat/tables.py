"""The compatibility tables of confidential containers 1.12, row by row.

A release in a heading means "this one or a later one of the same minor version"; a minor version after the last heading has what
the last heading has. A level of None is the dash in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

Version = tuple[int, int, int]


class Level(StrEnum):
    """How well something is supported."""

    GA = "General Availability"
    TP = "Technology Preview"
    DP = "Developer Preview"


class Platform(StrEnum):
    """Where guests run."""

    BARE_METAL = "bare metal"
    IBM_Z = "IBM Z bare metal"
    IBM_Z_PEER = "IBM Z peer pods"
    AZURE = "Azure"


class Architecture(NamedTuple):
    """Table 1.1: the least release without and with a GPU; None where there is none."""

    name: str
    without_gpu: Version | None
    with_gpu: Version | None


class Feature(NamedTuple):
    """Table 1.2: what a platform, its TEEs and a GPU have in which release."""

    platform: Platform
    tees: tuple[str, ...]
    gpu: str
    levels: Mapping[Version, Level | None]


RELEASES: Final[tuple[Version, ...]] = ((4, 19, 28), (4, 20, 18), (4, 21, 9))
ARCHITECTURES: Final = (
    Architecture("x86_64", (4, 19, 28), (4, 21, 9)),
    Architecture("s390x", (4, 19, 28), None),
)
GPU: Final = "NVIDIA H100"
NO_GPU: Final = ""
_X86: Final = ("tdx", "snp")
_SE: Final = ("se",)


def _row(platform: Platform, tees: tuple[str, ...], gpu: str, *levels: Level | None) -> Feature:
    return Feature(platform, tees, gpu, dict(zip(RELEASES, levels, strict=True)))


FEATURES: Final = (
    _row(Platform.BARE_METAL, _X86, NO_GPU, Level.GA, Level.GA, Level.GA),
    _row(Platform.BARE_METAL, _X86, GPU, None, None, Level.TP),
    _row(Platform.IBM_Z, _SE, NO_GPU, Level.GA, Level.GA, Level.GA),
    _row(Platform.IBM_Z_PEER, _SE, NO_GPU, Level.GA, Level.GA, Level.GA),
    _row(Platform.AZURE, _X86, NO_GPU, Level.GA, Level.GA, Level.GA),
    _row(Platform.AZURE, _X86, GPU, None, None, Level.DP),
)
# The kubelet hands a GPU to a guest through this gate, and older releases do not switch it on.
GPU_GATE: Final = "KubeletPodResourcesGet"
