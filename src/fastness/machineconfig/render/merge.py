"""Many configs into one spec.

The Ignition documents merge as Ignition merges a child into a parent, with two corrections: a file whose content is replaced
does not inherit the compression of what it replaces, and every file may overwrite what is on the disk unless it says otherwise.
Of the other fields FIPS is on if anyone asks for it, the last special kernel wins (`default` never takes one back), lists are
concatenated with repetitions, and the last image that a person asked for wins over the cluster's. A field that we do not know is
kept, the last one winning.

`sources` are in merge order (`select.merge_order`), their documents of the current version (`documents`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.documents import EMPTY, merge_documents

Object = Mapping[str, Any]
DEFAULT_KERNEL: Final = "default"
_IMAGES: Final = ("osImageURL", "baseOSExtensionsContainerImage")
_MERGED: Final = frozenset({*_IMAGES, "config", "kernelArguments", "extensions", "fips", "kernelType"})


@dataclass(frozen=True, slots=True)
class Source:
    """One config that goes in; `generated` ones do not choose the image."""

    name: str
    spec: Object
    document: JsonObject | None
    generated: bool = False


def merge_specs(sources: Sequence[Source], os_image: str = "", extensions_image: str = "") -> JsonObject:
    """The spec that the sources make together; the inputs are not changed."""
    spec: JsonObject = {
        "osImageURL": os_image,
        "baseOSExtensionsContainerImage": extensions_image,
        "config": merged_document(sources),
        "kernelArguments": [argument for source in sources for argument in source.spec.get("kernelArguments") or ()],
        "extensions": [extension for source in sources for extension in source.spec.get("extensions") or ()],
        "fips": any(source.spec.get("fips") for source in sources),
        "kernelType": DEFAULT_KERNEL,
    }
    for source in sources:
        kernel = source.spec.get("kernelType") or DEFAULT_KERNEL
        if kernel != DEFAULT_KERNEL:
            spec["kernelType"] = kernel
        if not source.generated:
            spec.update({name: source.spec[name] for name in _IMAGES if source.spec.get(name)})
        for name in source.spec.keys() - _MERGED:
            spec[name] = source.spec[name]
    return spec


def merged_document(sources: Sequence[Source]) -> JsonObject:
    """The Ignition documents merged in order; an empty one where nobody brings any."""
    documents = [(source.name, source.document) for source in sources if source.document]
    return merge_documents(documents) if documents else EMPTY
