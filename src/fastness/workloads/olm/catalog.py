"""The packages that can be subscribed to: operators whose work this control plane does itself.

A catalog is data: sources, packages, channels, releases. A package is here only if something in Fastness does what it promises;
anybody else's operator cannot be resolved, and the Subscription says so. Releases of a channel stand oldest first, and each
names the one that it replaces.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject

MARKETPLACE: Final = "openshift-marketplace"
OWN, SINGLE, MULTI, ALL = "OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"
MODES: Final = (OWN, SINGLE, MULTI, ALL)


@dataclass(frozen=True, slots=True)
class Release:
    """One version in a channel: the name of its ClusterServiceVersion, its number, what it replaces."""

    csv: str
    version: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """One operator: what people read about it, what it needs served, how it may be installed."""

    name: str
    display: str
    provider: str
    description: str
    namespace: str
    channels: dict[str, tuple[Release, ...]]
    default_channel: str
    owns: tuple[str, ...]
    modes: tuple[str, ...] = (OWN, SINGLE, ALL)
    # The loops of this control plane that do its work; empty while there are none.
    worked_by: tuple[str, ...] = ()

    def release(self, csv: str) -> Release | None:
        """The release with that ClusterServiceVersion, in any channel."""
        return next(
            (release for releases in self.channels.values() for release in releases if release.csv == csv), None
        )


@dataclass(frozen=True, slots=True)
class Source:
    """One CatalogSource and the packages that it offers."""

    name: str
    display: str
    publisher: str
    packages: tuple[Package, ...]

    def package(self, name: str) -> Package | None:
        """The package of that name."""
        return next((package for package in self.packages if package.name == name), None)

    def near(self, name: str) -> str:
        """The name that was probably meant; empty if none is like it."""
        matches = difflib.get_close_matches(name, [package.name for package in self.packages], n=1)
        return matches[0] if matches else ""


def part(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The spec or status of an object; users may write anything there, and what is no map is empty."""
    value = obj.get(name)
    return value if isinstance(value, Mapping) else {}


def entries(value: Any) -> list[Mapping[str, Any]]:
    """The maps in a list; whatever else somebody wrote is left out."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _channel(package: str, *versions: str) -> tuple[Release, ...]:
    names = [f"{package}.v{version}" for version in versions]
    return tuple(
        Release(csv, version, replaces)
        for csv, version, replaces in zip(names, versions, ["", *names[:-1]], strict=True)
    )


_SANDBOXED = Package(
    "sandboxed-containers-operator",
    "openshift-sandboxed-containers-operator",
    "Red Hat",
    "Installs the Kata runtime on workers and makes runtime classes, confidential ones included.",
    "openshift-sandboxed-containers-operator",
    {"stable": _channel("sandboxed-containers-operator", "1.11.1", "1.12.0")},
    "stable",
    ("kataconfigs.kataconfiguration.openshift.io",),
    worked_by=("kata-config",),
)
_NFD = Package(
    "nfd",
    "Node Feature Discovery Operator",
    "Red Hat",
    "Labels nodes by what is found on them.",
    "openshift-nfd",
    {"stable": _channel("nfd", "4.20.0", "4.21.0")},
    "stable",
    (
        "nodefeaturediscoveries.nfd.openshift.io",
        "nodefeaturerules.nfd.openshift.io",
        "nodefeatures.nfd.openshift.io",
    ),
    worked_by=("node-features",),
)
_TRUSTEE = Package(
    "trustee-operator",
    "Red Hat build of Trustee",
    "Red Hat",
    "Judges evidence and releases secrets to guests that proved themselves.",
    "trustee-operator-system",
    {"stable": _channel("trustee-operator", "1.0.0", "1.1.0")},
    "stable",
    ("kbsconfigs.confidentialcontainers.org", "trusteeconfigs.confidentialcontainers.org"),
    worked_by=("kbs-configs", "trustee-configs"),
)
_GPU = Package(
    "gpu-operator-certified",
    "NVIDIA GPU Operator",
    "NVIDIA Corporation",
    "Says what nodes with GPUs should run.",
    "nvidia-gpu-operator",
    {"stable": _channel("gpu-operator-certified", "25.3.4", "25.10.0")},
    "stable",
    ("clusterpolicies.nvidia.com",),
)

SOURCES: Final = (
    Source("redhat-operators", "Red Hat Operators", "Red Hat", (_SANDBOXED, _NFD, _TRUSTEE)),
    Source("certified-operators", "Certified Operators", "Red Hat", (_GPU,)),
)


def source(name: str, namespace: str) -> Source | None:
    """The catalog of that name in that namespace."""
    return next((catalog for catalog in SOURCES if catalog.name == name and namespace == MARKETPLACE), None)


def package_of(csv: str) -> Package | None:
    """The package that a ClusterServiceVersion of that name belongs to."""
    return next((package for catalog in SOURCES for package in catalog.packages if package.release(csv)), None)


def catalog_source(source: Source) -> JsonObject:
    """The CatalogSource object, as users look for it."""
    return {
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": source.name, "namespace": MARKETPLACE},
        "spec": {"displayName": source.display, "publisher": source.publisher, "sourceType": "internal"},
    }  # fmt: skip
