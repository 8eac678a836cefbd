"""SecurityContextConstraints: what pods of an account may ask of the host.

An older kind: its fields stand beside `metadata` instead of under a spec, so the whole object keeps what it holds.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Column, Kind, Scope
from fastness.kinds.openshift import LABELS


def _strategy(description: str) -> s.Fragment:
    return s.anything(description, nullable=True)


SECURITY_CONTEXT_CONSTRAINTS = Kind(
    group="security.openshift.io",
    version="v1",
    kind="SecurityContextConstraints",
    plural="securitycontextconstraints",
    singular="securitycontextconstraints",
    short_names=("scc",),
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="What pods of an account may ask of the host.",
    schema=s.obj(
        {
            "allowPrivilegedContainer": s.boolean("Whether containers may be privileged."),
            "allowedCapabilities": s.array(s.string(), "Capabilities that may be asked for.", nullable=True),
            "priority": s.integer("The higher, the earlier it is tried.", format="int32", nullable=True),
            "readOnlyRootFilesystem": s.boolean("Whether the root file system must be read-only."),
            "volumes": s.array(s.string(), "Kinds of volumes that may be used.", nullable=True),
            "users": s.array(s.string(), "Users that it is granted to.", nullable=True),
            "groups": s.array(s.string(), "Groups that it is granted to.", nullable=True),
            "seLinuxContext": _strategy("How SELinux labels are chosen."),
            "runAsUser": _strategy("How user ids are chosen."),
            "fsGroup": _strategy("How file system groups are chosen."),
            "supplementalGroups": _strategy("How supplemental groups are chosen."),
        },
        **s.KEEP,
    ),
    columns=(
        Column("Priv", ".allowPrivilegedContainer"),
        Column("Caps", ".allowedCapabilities"),
        Column("SELinux", ".seLinuxContext.type"),
        Column("RunAsUser", ".runAsUser.type"),
        Column("FSGroup", ".fsGroup.type"),
        Column("SupGroup", ".supplementalGroups.type"),
        Column("Priority", ".priority"),
        Column("ReadOnlyRootFS", ".readOnlyRootFilesystem"),
        Column("Volumes", ".volumes"),
    ),
)

KINDS = (SECURITY_CONTEXT_CONSTRAINTS,)
