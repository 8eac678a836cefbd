"""Image mode of the whole cluster: by which way a change of configuration reaches nodes, and which program deploys it there.

    mode = image_mode(configuration, feature_gate)       MachineConfiguration and FeatureGate, both called `cluster`

                                   stage 1               stage 2                stage 3
    no gate                        direct, host          layered, host          layered, bootc alone
    OnClusterBuild                 direct, host          layered, host          layered, bootc alone
    BootcNodeManagement            direct, bootc first   layered, bootc first   layered, bootc alone
    both                           layered, bootc first  layered, bootc first   layered, bootc alone

* A cluster without a word about its stage is in stage 1: pools whose image is described in a MachineOSConfig are built, others
  are not. A gate adds to a stage and takes nothing from it.
* Layered: every pool with machines gets an image of its own, pushed to the place that is named once in the cluster. While no
  place is named nothing changes for pools, and each of them says what is missing.
* A word that cannot be read is not followed, and neither is its absence: everything stays as it is until somebody puts it right.
  Falling back to stage 1 would send a fleet back to its stock image because of a typing error.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from fastness.formats import oci
from fastness.formats.errors import FormatError
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.names import OsDriverRule
from fastness.kinds.objects import annotations_of
from fastness.machineconfig.render.settings.cluster import ClusterSettings

Object = Mapping[str, Any]
BOOTC_GATE: Final = "BootcNodeManagement"
BUILD_GATE: Final = "OnClusterBuild"
_TAG: Final = "latest"


class Stage(StrEnum):
    """The three stages, in the words of the annotation."""

    DUAL = "1"
    LAYERED = "2"
    BOOTC = "3"


class UpdatePath(StrEnum):
    """How configuration reaches nodes of pools that nobody described an image for."""

    DIRECT = "direct"
    LAYERED = "layered"


class Cell(NamedTuple):
    """What a stage and the gates mean."""

    path: UpdatePath
    driver: OsDriverRule


_DIRECT: Final = Cell(UpdatePath.DIRECT, OsDriverRule.BY_HOST)
_LAYERED: Final = Cell(UpdatePath.LAYERED, OsDriverRule.BY_HOST)
_LAYERED_BOOTC: Final = Cell(UpdatePath.LAYERED, OsDriverRule.BOOTC_FIRST)
_BOOTC: Final = Cell(UpdatePath.LAYERED, OsDriverRule.BOOTC_ALONE)
NEITHER: Final[frozenset[str]] = frozenset()
TABLE: Final[Mapping[Stage, Mapping[frozenset[str], Cell]]] = {
    Stage.DUAL: {
        NEITHER: _DIRECT,
        frozenset({BUILD_GATE}): _DIRECT,
        frozenset({BOOTC_GATE}): Cell(UpdatePath.DIRECT, OsDriverRule.BOOTC_FIRST),
        frozenset({BOOTC_GATE, BUILD_GATE}): _LAYERED_BOOTC,
    },
    Stage.LAYERED: {
        NEITHER: _LAYERED,
        frozenset({BUILD_GATE}): _LAYERED,
        frozenset({BOOTC_GATE}): _LAYERED_BOOTC,
        frozenset({BOOTC_GATE, BUILD_GATE}): _LAYERED_BOOTC,
    },
    Stage.BOOTC: {
        NEITHER: _BOOTC,
        frozenset({BUILD_GATE}): _BOOTC,
        frozenset({BOOTC_GATE}): _BOOTC,
        frozenset({BOOTC_GATE, BUILD_GATE}): _BOOTC,
    },
}


class PushPlace(NamedTuple):
    """Where images of pools go that nobody described: a repository, and the Secret to push with."""

    repository: str
    secret: str

    def spec(self, pool: str) -> str:
        """The push spec of one pool."""
        return f"{self.repository}/{pool}:{_TAG}"


class ImageMode(NamedTuple):
    """What holds in the cluster; `place` is None while something is missing, and `problem` says what to do."""

    path: UpdatePath
    driver: OsDriverRule
    place: PushPlace | None = None
    reason: str = ""
    problem: str = ""
    unreadable: bool = False

    @property
    def builds_by_default(self) -> bool:
        """Whether pools without a MachineOSConfig get one."""
        return self.path is UpdatePath.LAYERED and self.place is not None


def image_mode(configuration: Object | None, feature_gate: Object | None) -> ImageMode:
    """What MachineConfiguration and FeatureGate of the cluster mean together."""
    notes = annotations_of(configuration or {})
    word = notes.get(names.IMAGE_MODE_STAGE, Stage.DUAL)
    try:
        stage = Stage(word)
    except ValueError:
        return ImageMode(*_DIRECT, None, "StageInvalid", stage_problem(word), unreadable=True)
    cell = TABLE[stage][gates_on(feature_gate)]
    if cell.path is UpdatePath.DIRECT:
        return ImageMode(*cell)
    place, problem = _place(notes)
    return ImageMode(*cell, place, "PushPlaceMissing" if problem else "", problem)


def gets_an_image(pool: Object, mode: ImageMode) -> bool:
    """Whether a pool that nobody described an image for gets one: a pool without machines has nobody who would boot it."""
    return mode.builds_by_default and bool((pool.get("status") or {}).get("machineCount"))


def gates_on(feature_gate: Object | None) -> frozenset[str]:
    """Those of the two gates that are on."""
    settings = ClusterSettings(feature_gate=feature_gate)
    return frozenset(gate for gate in (BOOTC_GATE, BUILD_GATE) if settings.gate_on(gate))


def stage_problem(word: str) -> str:
    """What is wrong with a word for a stage; empty where it is one."""
    if word in tuple(Stage):
        return ""
    return f"annotation {names.IMAGE_MODE_STAGE} of MachineConfiguration cluster is {word[:40]!r}: write 1, 2 or 3"


def place_problem(spec: str) -> str:
    """What is wrong with the place that images are pushed to; empty where it is good."""
    try:
        reference = oci.reference(f"{spec}/pool:{_TAG}")
    except FormatError as error:
        return f"annotation {names.IMAGE_PUSH_SPEC}: {error}; write HOST[:PORT]/REPOSITORY, without a tag"
    if reference.digest or ":" in spec.rpartition("/")[2]:
        return f"annotation {names.IMAGE_PUSH_SPEC} names a tag or a digest; write HOST[:PORT]/REPOSITORY"
    return ""


def _place(notes: Mapping[str, str]) -> tuple[PushPlace | None, str]:
    """Where images go, or what is missing."""
    spec, secret = (notes.get(key, "").strip() for key in (names.IMAGE_PUSH_SPEC, names.IMAGE_PUSH_SECRET))
    missing = [key for key, value in ((names.IMAGE_PUSH_SPEC, spec), (names.IMAGE_PUSH_SECRET, secret)) if not value]
    if missing:
        return None, (
            "the cluster builds an image for every pool, and nobody said where to push it: set the annotation "
            f"{' and '.join(missing)} of MachineConfiguration cluster, or describe the pool's image in a MachineOSConfig"
        )
    problem = place_problem(spec)
    return (None, problem) if problem else (PushPlace(spec, secret), "")
