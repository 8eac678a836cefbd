"""What a build makes in the cluster beside itself: names and labels, which everybody who looks for them knows.

Job `build-X`, ConfigMaps `containerfile-X` and `context-X`, Secrets `base-X` and `final-X`, and ConfigMap `log-X`, for the
MachineOSBuild X, in the namespace of the operator whose kinds these are. All belong to the build and go with it.
"""

from __future__ import annotations

from typing import Final

from fastness.crypto.digests import sha256
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import GROUP, names
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD

NAMESPACE: Final = names.OPERATOR_NAMESPACE
LOG: Final = "log"
"""The key of a log in its ConfigMap."""
BUILD_LABEL: Final = f"{GROUP}/machine-os-build"
_MARKS: Final = (f"{GROUP}/ephemeral-build-object", f"{GROUP}/on-cluster-layering")
_MOST: Final = 63
_HEX: Final = 40


def named(prefix: str, build: str) -> str:
    """The name of a thing of a build; where both are too long for a label, a digest takes the place of the build."""
    whole = f"{prefix}-{build}"
    return whole if len(whole) <= _MOST else f"{prefix}-{sha256(build.encode()).hex[:_HEX]}"


def log_name(build: str) -> str:
    """The ConfigMap with the log of a build."""
    return named("log", build)


def metadata_of(name: str, build: str, uid: str) -> JsonObject:
    """What all things of a build have: labels to find them by, and their owner."""
    owner = {"apiVersion": names.API_VERSION, "kind": MACHINE_OS_BUILD.kind, "name": build, "uid": uid}
    return {
        "name": name, "namespace": NAMESPACE, "labels": {**dict.fromkeys(_MARKS, ""), BUILD_LABEL: label_of(build)},
        **({"ownerReferences": [owner]} if uid else {}),
    }  # fmt: skip


def label_of(build: str) -> str:
    """A build as the value of a label."""
    return build if len(build) <= _MOST else sha256(build.encode()).hex[:_HEX]


def reference(group: str, plural: str, name: str) -> JsonObject:
    """A thing as a status names it."""
    return {"group": group, "resource": plural, "namespace": NAMESPACE, "name": name}
