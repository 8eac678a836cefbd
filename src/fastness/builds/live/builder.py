"""The port of builders: what the loop of builds asks of whoever builds, here or in a Job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from fastness.builds.errors import NoBuilder
from fastness.builds.inputs import BuildInputs
from fastness.builds.log import BuildLog
from fastness.builds.signing import Beside
from fastness.kinds.kind import JsonObject
from fastness.kube.port import Cluster
from fastness.machineconfig.streams.access import RegistryAccess


@dataclass(frozen=True, slots=True)
class Order:
    """One image to be made: of what, with which labels, pushed where; credentials are for transfers, never for the build.

    `uid` is that of the MachineOSBuild, whose things everything is that is made for it.
    """

    name: str
    inputs: BuildInputs
    target: str
    pull: RegistryAccess = field(repr=False)
    push: RegistryAccess = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""


class Builder(Protocol):
    """Somebody who builds images and knows the registry that they are in."""

    async def obstacle(self) -> str:
        """Why nothing can be built here, with what to do; empty when it can."""

    async def build(self, order: Order, log: BuildLog) -> str:
        """Build an image and push it, telling how it goes: the image by digest; raises BuildError.

        Asked again after a restart it goes on with what is under way, or begins anew. Who cancels it may come back.
        """

    async def forget(self, name: str) -> None:
        """Leave nothing of a build: it ended well, or nobody wants it any more."""

    def runs(self, name: str) -> JsonObject | None:
        """The object of the cluster that runs a build, as `status.builder` names it; None where there is none."""

    async def require(self, image: str, access: RegistryAccess) -> None:
        """Have the registry show an image by digest; raises TransferFailed, `absent` where it is not there."""

    async def delete(self, image: str, access: RegistryAccess) -> None:
        """Take an image by digest out of its registry; raises TransferFailed."""

    async def put_beside(self, image: str, beside: Beside, access: RegistryAccess) -> None:
        """Put what belongs to an image by digest beside it, in its registry; raises TransferFailed."""


@runtime_checkable
class Sealer(Protocol):
    """A builder that can give images a kernel image which names their root."""

    async def seal_obstacle(self) -> str:
        """Why nothing can be sealed here, with what to do; empty when it can."""


async def why_not_sealed(builder: Builder) -> str:
    """Why a builder cannot seal images; empty when it can. One that says nothing about it cannot."""
    if isinstance(builder, Sealer):
        return await builder.seal_obstacle()
    return "the builder of this control plane cannot seal images: take the annotation back, or build where `fastness up` runs"


class Nobody:
    """No builder: for control planes that have no place to build in."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def obstacle(self) -> str:
        """Always the same."""
        return self._why

    async def build(self, order: Order, log: BuildLog) -> str:
        """Not asked while there is an obstacle; raises NoBuilder."""
        raise NoBuilder(f"{order.name}: {self._why}")

    async def forget(self, name: str) -> None:
        """Nothing was made."""

    def runs(self, name: str) -> JsonObject | None:
        """Nothing runs."""
        return None

    async def require(self, image: str, access: RegistryAccess) -> None:
        """Not asked either; raises NoBuilder."""
        raise NoBuilder(f"{image}: {self._why}")

    async def delete(self, image: str, access: RegistryAccess) -> None:
        """Nothing was built here, so nothing is deleted."""

    async def put_beside(self, image: str, beside: Beside, access: RegistryAccess) -> None:
        """Nothing was built here; raises NoBuilder."""
        raise NoBuilder(f"{image}: {self._why}")


NO_BUILDER: Final = Nobody(
    "this control plane has no place to build images in: set builds.enabled in the chart, or build outside and name the image in "
    "osImageURL of a MachineConfig; deleting the MachineOSConfig lets the pool go on"
)
MakeBuilder = Callable[[Cluster], Builder]
"""Who builds, given the cluster as the loop of builds may write it."""


def nobody_builds(_cluster: Cluster) -> Builder:
    """For control planes that were not told where to build."""
    return NO_BUILDER
