"""One combination against the tables: how well it is supported, and if not, which entry says no and what would help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fastness.workloads.compat.tables import (
    ARCHITECTURES,
    FEATURES,
    GPU,
    GPU_GATE,
    NO_GPU,
    RELEASES,
    Feature,
    Level,
    Platform,
    Version,
)

TEE_NAMES: Final = {"tdx": "Intel TDX", "snp": "AMD SEV-SNP", "se": "IBM SE"}
_SHAPE: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,6})(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Combination:
    """What somebody has: a release, an architecture, a platform, a TEE (empty: none), with a GPU or without."""

    version: str
    architecture: str = "x86_64"
    platform: Platform = Platform.BARE_METAL
    tee: str = ""
    gpu: bool = False

    @property
    def named(self) -> str:
        """The combination in words."""
        parts = [self.platform.value, self.architecture, TEE_NAMES.get(self.tee, self.tee or "no TEE")]
        return ", ".join([*parts, *([GPU] if self.gpu else []), f"OpenShift {self.version}"])


@dataclass(frozen=True, slots=True)
class Support:
    """The judgement: a level, or a reason why there is none."""

    level: Level | None
    reason: str = ""
    hint: str = ""

    @property
    def ok(self) -> bool:
        """Whether the combination is supported at all."""
        return self.level is not None


def judge(combination: Combination) -> Support:
    """How well a combination is supported; total."""
    release = parse_release(combination.version)
    if release is None:
        return Support(None, f"{combination.version!r} is not a release", "Give it as 4.21.9.")
    return _architecture(combination, release) or _feature(combination, release)


def parse_release(text: str) -> Version | None:
    """A release as numbers, a prerelease as the patch before; None if it is none."""
    match = _SHAPE.match(text)
    if match is None:
        return None
    # A prerelease comes before its release (Semantic Versioning, item 11).
    major, minor, patch = (int(match[part]) for part in (1, 2, 3))
    return (major, minor, patch - 1) if match[4] else (major, minor, patch)


def column(release: Version) -> Version | None:
    """The heading of Table 1.2 that a release stands under; None when it is older than all of its minor version."""
    # A minor version after the last heading has what that heading has.
    if release[:2] > RELEASES[-1][:2]:
        return RELEASES[-1]
    return next((head for head in RELEASES if head[:2] == release[:2] and release >= head), None)


def _architecture(combination: Combination, release: Version) -> Support | None:
    row = next((row for row in ARCHITECTURES if row.name == combination.architecture), None)
    if row is None:
        names = ", ".join(row.name for row in ARCHITECTURES)
        return Support(None, f"the architecture {combination.architecture} is not supported", f"Supported are {names}.")
    least = row.with_gpu if combination.gpu else row.without_gpu
    if least is None:
        return Support(None, f"GPUs are not supported on {row.name}", "Use x86_64 for confidential GPUs.")
    if release < least:
        gate = f", where {GPU_GATE} is switched on" if combination.gpu else ""
        what = "with a GPU" if combination.gpu else "without a GPU"
        return Support(
            None,
            f"{row.name} {what} needs OpenShift {_dotted(least)} or later{gate}",
            _upgrade(release, combination.gpu),
        )
    return None


def _feature(combination: Combination, release: Version) -> Support:
    if not combination.tee:
        hint = "Switch TDX or SEV-SNP on in the firmware, and look at `fastness agent features`."
        return Support(None, "no trusted execution environment was found", hint)
    gpu = GPU if combination.gpu else NO_GPU
    row = next(
        (
            row
            for row in FEATURES
            if row.platform is combination.platform and combination.tee in row.tees and row.gpu == gpu
        ),
        None,
    )
    if row is None:
        return Support(
            None,
            f"{TEE_NAMES.get(combination.tee, combination.tee)} on {combination.platform.value} is in no row of the table",
            _rows(combination),
        )
    head = column(release)
    if head is None:
        near = next((least for least in RELEASES if least[:2] == release[:2]), RELEASES[0])
        return Support(
            None, f"OpenShift {combination.version} is older than {_dotted(near)}", _upgrade(release, combination.gpu)
        )
    level = row.levels[head]
    if level is None:
        return Support(
            None, f"{row.gpu} is not supported before OpenShift {_first(row)}", _upgrade(release, combination.gpu)
        )
    return Support(level, "" if level is Level.GA else f"{level.value}: do not use it in production")


def _rows(combination: Combination) -> str:
    rows = [f"{', '.join(row.tees)} on {row.platform.value}" for row in FEATURES if bool(row.gpu) == combination.gpu]
    return f"Supported are {'; '.join(rows)}."


def _first(row: Feature) -> str:
    return _dotted(next(head for head, level in row.levels.items() if level is not None))


def _upgrade(release: Version, gpu: bool) -> str:
    least = RELEASES[-1] if gpu else next((head for head in RELEASES if head[:2] >= release[:2]), RELEASES[-1])
    return f"Upgrade to {_dotted(least)} or later."


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))
