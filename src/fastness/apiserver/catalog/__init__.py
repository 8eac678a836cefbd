"""What the embedded API serves now.

A `Catalog` is an immutable answer to every "is there such a resource?" of the REST engine: the built-in kinds of the registry and
the kinds of users' CustomResourceDefinition objects.

* `Catalog` (catalog.py): lookups in O(1) by (group, version, plural), by kind and by the names that people type; `with_crd`
  and `without_crd` return a new catalog with the next generation and share everything that did not change.
* `Served` (served.py): one kind in one version with what is compiled from it, each part on first use.
* `versions.py`: the order in which Kubernetes prefers versions and lists groups.
* `crd_rules.py`: what a CustomResourceDefinition must satisfy beyond its schema; `definitions.py`: its defaults and its status.

Everything that is written once per generation (discovery.py, openapi/) is built from a catalog and thrown away with it.
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
