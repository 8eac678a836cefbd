"""CustomResourceDefinition: a kind of object that somebody added to the API.

The view has what the API needs to decide about a definition's life; `kinds.crd.from_manifest` reads the kinds out of it.
"""

from __future__ import annotations

from fastness.kinds.kubernetes.native import native
from fastness.kinds.objects import Condition, Metadata, View

CUSTOM_RESOURCE_DEFINITION = native("apiextensions.k8s.io", "CustomResourceDefinition")
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class Names(View):
    """The names that a definition asks for, or was given."""

    plural: str = ""
    kind: str = ""
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class Version(View):
    """One version of a definition."""

    name: str
    served: bool = False
    storage: bool = False


class DefinitionSpec(View):
    """What a definition adds."""

    group: str = ""
    names: Names = Names()
    scope: str = ""
    versions: tuple[Version, ...] = ()


class DefinitionStatus(View):
    """Whether the API took it."""

    conditions: tuple[Condition, ...] | None = None
    accepted_names: Names = Names()
    stored_versions: tuple[str, ...] | None = None


class CustomResourceDefinition(View):
    """A definition as its life cycle sees it."""

    metadata: Metadata = Metadata()
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()
