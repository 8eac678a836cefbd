"""Many configs into one spec: the Ignition document of each in one language, then everything merged in order.

Documents may be of any supported version; they are brought to the current one before anything looks at them
(`current_document`), so that rules, merge and comparison have one language. What Ignition itself would refuse is a problem of
the config, with the path inside the document; what it would only warn about is a warning. A wholly empty object is accepted and
says nothing.

They merge as Ignition merges a child into a parent, with two corrections: a file whose content is replaced does not inherit the
compression of what it replaces, and every file may overwrite what is on the disk unless it says otherwise. Of the other fields
FIPS is on if anyone asks for it, the last special kernel wins (`default` never takes one back), lists are concatenated with
repetitions, and the last image that a person asked for wins over the cluster's. A field that we do not know is kept, the last
one winning.

`sources` are in merge order (`inputs.merge_order`), their documents of the current version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.machineconfig import ignition
from fastness.machineconfig.render.errors import Problem, Severity

EMPTY: Final[JsonObject] = {"ignition": {"version": ignition.CURRENT}}
_VERSIONS: Final = ", ".join(version.removesuffix(".0") for version in ignition.SUPPORTED)
_WAYS_OUT: Final = {
    "invalid-version": f"set ignition.version to one of {_VERSIONS}",
    "unknown-version": f"supported are {_VERSIONS}",
}

Object = Mapping[str, Any]
DEFAULT_KERNEL: Final = "default"
_IMAGES: Final = ("osImageURL", "baseOSExtensionsContainerImage")
_MERGED: Final = frozenset({*_IMAGES, "config", "kernelArguments", "extensions", "fips", "kernelType"})


def current_document(name: str, raw: Any) -> tuple[JsonObject | None, list[Problem]]:
    """The document of the config `name` in the current version, if it is good, and everything found about it."""
    if raw == {}:
        return EMPTY, []
    inspection = ignition.inspect(raw)
    problems = [_problem(name, finding) for finding in inspection.problems]
    if inspection.config is None:
        return None, problems
    try:
        current, _ = ignition.translate(inspection.config, ignition.CURRENT)
    except ignition.InvalidConfig as error:  # a spec 2 config may be good and yet have no meaning in spec 3
        return None, [*problems, *(_problem(name, finding) for finding in error.problems)]
    if _packed(current.body):
        problems += [_problem(name, finding) for finding in ignition.check_contents(current.body)]
    return (None if any(problem.fatal for problem in problems) else current.body), problems


def _packed(document: JsonObject) -> bool:
    """Whether any file is compressed or has a hash: only then does decoding find more than the check of its URL did."""
    for entry in document.get("storage", {}).get("files", ()):
        for resource in (entry.get("contents", {}), *entry.get("append", ())):
            if "compression" in resource or "verification" in resource:
                return True
    return False


def merge_documents(documents: Iterable[tuple[str, JsonObject]]) -> JsonObject:
    """Named documents of the current version merged in order, with the corrections for machine configs."""
    merged = ignition.merge_all(documents, corrections=True)
    return merged if "ignition" in merged else {**EMPTY, **merged}


def _problem(name: str, finding: ignition.Problem) -> Problem:
    severity = Severity.ERROR if finding.severity is ignition.Severity.ERROR else Severity.WARNING
    place = f"spec.config.{finding.path}" if finding.path else "spec.config"
    return Problem(name, place, f"ignition-{finding.code}", finding.message, _WAYS_OUT.get(finding.code, ""), severity)


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
        # The order of names must not let a later config take a realtime kernel back by saying nothing special.
        if kernel != DEFAULT_KERNEL:
            spec["kernelType"] = kernel
        # Our own configs carry the cluster's image; only a person's choice may win over it.
        if not source.generated:
            spec.update({name: source.spec[name] for name in _IMAGES if source.spec.get(name)})
        for name in source.spec.keys() - _MERGED:
            spec[name] = source.spec[name]
    return spec


def merged_document(sources: Sequence[Source]) -> JsonObject:
    """The Ignition documents merged in order; an empty one where nobody brings any."""
    documents = [(source.name, source.document) for source in sources if source.document]
    return merge_documents(documents) if documents else EMPTY
