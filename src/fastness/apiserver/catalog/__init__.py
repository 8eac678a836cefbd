"""What the embedded API serves now: the built-in kinds, and those of users' CustomResourceDefinitions.

    catalog.py      `Catalog`: every lookup that a request needs, immutable, one generation per change
    crd_rules.py    Whether a CustomResourceDefinition may be served: the rules that its own schema cannot express
    definitions.py  CustomResourceDefinition objects: what becomes of them
    served.py       One kind in one version, as the REST engine uses it

A `Catalog` is an immutable answer to every "is there such a resource?" of the REST engine: lookups in O(1) by (group,
version, plural), by kind and by the names that people type. `with_crd` and `without_crd` return a new catalog with the next
generation and share everything that did not change; what is compiled from a kind is compiled on first use. Everything that is
written once per generation (`apiserver/documents`) is built from a catalog and thrown away with it.
"""

from fastness.apiserver.catalog.catalog import Catalog, GroupVersions
from fastness.apiserver.catalog.crd_rules import check_crd, check_crd_update, invalid
from fastness.apiserver.catalog.definitions import crd_status, default_crd, is_established
from fastness.apiserver.catalog.served import Served, Source

__all__ = [
    "Catalog",
    "GroupVersions",
    "Served",
    "Source",
    "check_crd",
    "check_crd_update",
    "crd_status",
    "default_crd",
    "invalid",
    "is_established",
]
