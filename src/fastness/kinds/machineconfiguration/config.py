"""MachineConfig: a piece of what machines of a pool should be.

Most of it is an Ignition document. The API stores what it is given: a config that cannot be rendered shows as a degraded pool
and is not refused here, because that is how users of this kind find out. Which fields a confidential pool may not set is
decided in `machineconfig`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.objects import Metadata, View

ROLE_LABEL = f"{GROUP}/role"
GENERATED_BY = f"{GROUP}/generated-by-controller-version"


MACHINE_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="MachineConfig",
    plural="machineconfigs",
    short_names=("mc",),
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="A piece of the configuration of machines; a pool merges those that it selects into one rendered config.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "osImageURL": s.string("The operating system image that machines boot, by digest."),
                    "baseOSExtensionsContainerImage": s.string("The image that holds packages for extensions."),
                    "config": s.anything("An Ignition document: files, units and users of the machine."),
                    "kernelArguments": s.array(
                        s.string(), "Arguments added to the kernel command line.", nullable=True, **s.ATOMIC
                    ),
                    "extensions": s.array(s.string(), "Named sets of packages to add to the host.", **s.ATOMIC),
                    "fips": s.boolean("Whether the machine runs in FIPS mode; cannot change after installation."),
                    "kernelType": s.string("Which kernel runs: default, realtime or 64k-pages; empty means default."),
                },
                "What this piece asks for.",
            )
        }
    ),
    columns=(
        Column(
            "GeneratedByController",
            r".metadata.annotations.machineconfiguration\.openshift\.io/generated-by-controller-version",
            description="Version of the controller that generated the config; empty when a person wrote it.",
        ),
        Column("IgnitionVersion", ".spec.config.ignition.version", description="Version of the Ignition document."),
        AGE,
    ),
)


class MachineConfigSpec(View):
    """What a MachineConfig asks for; absent and empty mean the same."""

    os_image_url: str = msgspec.field(default="", name="osImageURL")
    base_os_extensions_container_image: str = msgspec.field(default="", name="baseOSExtensionsContainerImage")
    config: dict[str, Any] | None = None
    kernel_arguments: tuple[str, ...] | None = None
    extensions: tuple[str, ...] | None = None
    fips: bool = False
    kernel_type: str = ""


class MachineConfig(View):
    """A MachineConfig as rendering sees it."""

    metadata: Metadata = Metadata()
    spec: MachineConfigSpec = MachineConfigSpec()

    @property
    def role(self) -> str:
        """The pool that the config is meant for, empty without the label."""
        return (self.metadata.labels or {}).get(ROLE_LABEL, "")


KINDS = (MACHINE_CONFIG,)
