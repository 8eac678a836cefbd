"""From an approved image to reference values.

An ApprovedImage names an image by digest; what a machine measures when it boots it stands in an annotation, as a manifest:

    {"pcrs": [{"id": 4, "value": "…", "events": [{"name", "pcr", "hash", "id"}]}], "values": [{"name", "value", …}],
     "variants": {"ready": {"pcrs": […]}}}

`pcrs` is what `fastness measure` prints and what the label `org.coreos.pcrs` of an image holds; `values` adds what a TPM does not
measure, such as the launch measurement of SEV-SNP, as a ReferenceValueSet lists them. One of the two is enough.

* All approvals of one image make one set, named after the digest. The set is written as a whole, or not at all. Where they differ
  in what machines measure, each is a variant of the image, by its own name: what two people measured does not mix either.
* `variants` holds manifests of named states: a boot phase, or a step of an update. The registers of one, and those of the
  manifest that it leaves out, make a tuple of values of its own (`tuples`).
* The events of a register become values as well. No policy sees them; they let a refusal say whose boot loader was started.
* An approval may be for some pools only; machines of others are not compared with its values.
* An approval ends: on the day that it names, or a year after it was made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.attestation.values.computed import NOTHING, Computed
from fastness.attestation.values.measured import COMPARED, is_measured
from fastness.attestation.values.tuples import IMAGE
from fastness.attestation.values.values import EVENT_PREFIX
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.images.errors import BadManifest
from fastness.images.measurement import BANK, Measurement, parse_manifest
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET, STATES, TYPES
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, metadata, object_name, rfc3339
from fastness.runtime.errors import CodedError

MEASUREMENTS: Final = "fastness.dev/measurements"
LABEL: Final = "org.coreos.pcrs"
VALID_UNTIL: Final = "fastness.dev/valid-until"
POOLS: Final = "fastness.dev/pools"
# Nothing is good for ever: an image that nobody approved again for a year is missing the fixes of that year.
LIFETIME: Final = timedelta(days=365)
MAX_VALUES: Final = 1024
MAX_VARIANTS: Final = 16
_DIGEST: Final = re.compile(r"@sha256:([0-9a-f]{64})\Z", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}\Z", re.ASCII)
_VARIANT: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._ -]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
_HEX: Final = re.compile(r"[0-9a-f]+\Z", re.ASCII)
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}\Z", re.ASCII)
_SIZES: Final = {"sha1": 40, "sha256": 64, "sha384": 96, "sha512": 128}
_MEMBERS: Final = frozenset({"name", "register", "algorithm", "value", "state", "type", "single", "note"})
BOOTED: Final = "booted"
# The register that holds the command line as a section of the image, and the one that everything else hangs on.
ROOT_VALUE: Final = "tpm_pcr11"
BUILD_VALUE: Final = "tpm_pcr4"
_VARIANT_SIZE: Final = 63
Object = Mapping[str, Any]
State = tuple[str, list[JsonObject]]


class BadValues(CodedError):
    """Values that somebody offers and that cannot become reference values."""


def set_name(image: str) -> str:
    """The name of the set that an image's values are kept in; raises BadValues without a digest."""
    match = _DIGEST.search(image)
    if match is None:
        raise BadValues("no-digest", f"{image} names no digest", "Approve the image as name@sha256:….")
    # The whole digest: two images whose digests merely begin alike would share a set, and either could have it withdrawn.
    return f"image-{match[1]}"


def set_of_image(image: str, approvals: Sequence[Object], computed: Computed = NOTHING) -> JsonObject:
    """The ReferenceValueSet of an image with these approvals, at least one; raises BadValues.

    What approvals say goes before what was computed from the image. An image that was built here is its pool's alone.
    """
    measured = [
        (object_name(entry).name, states_of_approval(entry)) for entry in approvals if carries_measurements(entry)
    ]
    values = joined(_distinguished(measured)) if measured else values_of_computed(computed)
    if not values:
        raise BadValues(
            "no-measurements",
            "nobody said what a machine measures when it boots the image",
            "Approve it with `fastness image approve`, which measures it or reads a manifest.",
        )
    pools = _own_pools(image, _pools(approvals), computed)
    # No beginning: it counts at once, whatever the clocks of verifiers say.
    validity = {"notAfter": rfc3339(max(end_of(approval) for approval in approvals))}
    return _set(image, values, pools, {"validity": validity})


def unapproved_set(image: str, computed: Computed) -> JsonObject:
    """The ReferenceValueSet of a build that nobody approved: its values, which count for nothing; raises BadValues."""
    return _set(image, values_of_computed(computed), sorted(computed.pools), {})


def _set(image: str, values: list[JsonObject], pools: list[str], more: Mapping[str, Any]) -> JsonObject:
    if len(values) > MAX_VALUES:
        raise BadValues("too-many-values", f"{len(values)} values are more than {MAX_VALUES}", "Leave out events.")
    spec = {"source": IMAGE, "image": image, "values": values, **({"pools": pools} if pools else {}), **more}
    return {
        "apiVersion": REFERENCE_VALUE_SET.api_version,
        "kind": REFERENCE_VALUE_SET.kind,
        "metadata": {"name": set_name(image)},
        "spec": spec,
    }


def _own_pools(image: str, pools: list[str], computed: Computed) -> list[str]:
    """The pools that values count for: those of the approvals, of a build its own alone; raises BadValues where none is left."""
    if not computed.pools:
        return pools
    own = sorted(computed.pools & set(pools)) if pools else sorted(computed.pools)
    if not own:
        named = ", ".join(pools)
        raise BadValues(
            "other-pool",
            f"{image} was built for pool {', '.join(sorted(computed.pools))}, and its approval is for {named}",
            "Approve it for the pool that it was built for; values of a build count for no other.",
        )
    return own


def carries_measurements(approval: Object) -> bool:
    """Whether an ApprovedImage says itself what machines measure."""
    notes = annotations_of(approval)
    return MEASUREMENTS in notes or LABEL in notes


def values_of_computed(computed: Computed) -> list[JsonObject]:
    """The values that were computed from an image, each register with the file that gave it; raises BadValues."""
    if computed.manifest is None:
        return []
    files: dict[str, list[str]] = {}
    for source in computed.sources:
        for name in source.get("values") or ():
            files.setdefault(str(name), []).append(str(source.get("file")))
    return [
        {**value, "note": (f"computed from {', '.join(files[value['name']])}" + _more(value["name"], computed))[:256]}
        if value["name"] in files
        else value
        for value in joined(states_of_manifest(dict(computed.manifest)))
    ]


def _more(name: str, computed: Computed) -> str:
    """What else a verdict says of an image: the root that its measured line names, and who built it of what."""
    if name == ROOT_VALUE and computed.root:
        return f"; it names the root {computed.root}"
    return f"; build {computed.built_by}" if name == BUILD_VALUE and computed.built_by else ""


def values_of_approval(approval: Object) -> list[JsonObject]:
    """The values that an ApprovedImage carries in its annotations; raises BadValues when they cannot be read."""
    return joined(states_of_approval(approval))


def states_of_approval(approval: Object) -> list[State]:
    """The states that an ApprovedImage names, each with all its values; raises BadValues when they cannot be read."""
    notes = annotations_of(approval)
    states: list[State] = []
    for key in (MEASUREMENTS, LABEL):
        if key not in notes:
            continue
        try:
            manifest = json.decode(str(notes[key]).encode())
        except JsonError as error:
            raise BadValues(
                "unreadable", f"annotation {key} is not JSON: {error}", "Approve the image again."
            ) from error
        # The label of an image is part of what the approval says: each state of one has the values of the other.
        read = states_of_manifest(manifest)
        states = [
            (other if state == BOOTED else state, [*values, *more]) for state, values in states for other, more in read
        ] or read
    return states


def end_of(approval: Object) -> datetime:
    """When an approval ends; raises BadValues."""
    # The server's time, which the author of the object cannot set.
    made = datetime.fromisoformat(str(metadata(approval).get("creationTimestamp")))
    text = annotations_of(approval).get(VALID_UNTIL)
    if text is None:
        return made + LIFETIME
    try:
        end = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadValues(
            "bad-date", f"annotation {VALID_UNTIL} is no time", "Write it as 2027-01-31T00:00:00Z."
        ) from error
    if end.tzinfo is None or end <= made:
        raise BadValues("bad-date", f"annotation {VALID_UNTIL} has no zone, or ends before it begins", "Correct it.")
    return end


def states_of_manifest(manifest: object) -> list[State]:
    """The states that a manifest names, each with all its values; raises BadValues."""
    if not isinstance(manifest, dict) or not {"pcrs", "values"} & set(manifest):
        raise BadValues("not-a-manifest", "a manifest is an object with a list pcrs, a list values, or both")
    variants = manifest.get("variants", {})
    if not isinstance(variants, dict) or len(variants) >= MAX_VARIANTS:
        raise BadValues(
            "not-a-manifest", f"the member variants of a manifest has less than {MAX_VARIANTS} manifests by name"
        )
    booted = _manifest(manifest)
    states: list[State] = [(BOOTED, booted)]
    for name, variant in variants.items():
        if not _VARIANT.match(name) or name == BOOTED or not isinstance(variant, dict):
            raise BadValues(
                "not-a-manifest", f"variant {name[:64]!r} of a manifest has no good name, or is no manifest"
            )
        own = _manifest(variant)
        named = {value["name"] for value in own}
        states.append((name, [*own, *(value for value in booted if value["name"] not in named)]))
    return states


def joined(states: Sequence[State]) -> list[JsonObject]:
    """The values of a set with these states. A value that not all of them have says which do; what explains has no state."""
    values: dict[tuple[str, str], JsonObject] = {}
    having: dict[tuple[str, str], list[str]] = {}
    for state, listed in states:
        for value in listed:
            key = (value["name"], value["value"])
            values.setdefault(key, value)
            having.setdefault(key, [])
            having[key] += [] if state in having[key] else [state]
    for key, value in values.items():
        if len(having[key]) < len(states) and any(is_measured(tee, key[0]) for tee in COMPARED):
            values[key] = {**value, "variants": having[key]}
    return [values[key] for key in sorted(values)]


def _pools(approvals: Sequence[Object]) -> list[str]:
    """The pools that the approvals are for; empty, for all, when one of them names none."""
    named = [annotations_of(approval).get(POOLS, "").split(",") for approval in approvals]
    # An approval that names no pool is for all of them: it says more than those that do, and takes their bound away.
    pools = [sorted({pool.strip() for pool in listed if pool.strip()}) for listed in named]
    return sorted({pool for listed in pools for pool in listed}) if all(pools) else []


def _distinguished(approvals: Sequence[tuple[str, list[State]]]) -> list[State]:
    """The states of several approvals of one image, by names of their own where they say different things."""
    contents = [
        {state: {(value["name"], value["value"]) for value in values} for state, values in states}
        for _, states in approvals
    ]
    if all(content == contents[0] for content in contents):
        return approvals[0][1] if approvals else []
    variants = [
        (f"{number} {state if state != BOOTED else name}"[:_VARIANT_SIZE].rstrip(" ._-"), values)
        for number, (name, states) in enumerate(approvals, start=1)
        for state, values in states
    ]
    if len(variants) > MAX_VARIANTS:
        raise BadValues("too-many-variants", f"the approvals name more than {MAX_VARIANTS} states", "Take some back.")
    return variants


def _manifest(manifest: Mapping[str, Any]) -> list[JsonObject]:
    """What one manifest says, without its variants."""
    values: list[JsonObject] = []
    if "pcrs" in manifest:
        try:
            values += values_of_measurement(parse_manifest(manifest))
        except BadManifest as error:
            raise BadValues(error.code, error.message, error.hint) from error
    listed = manifest.get("values", [])
    if not isinstance(listed, list):
        raise BadValues("not-a-manifest", "the member values of a manifest is a list")
    return [*values, *(checked_value(value) for value in listed)]


def values_of_measurement(measurement: Measurement) -> list[JsonObject]:
    """The registers of a measurement, and its events for explanations."""
    registers = [_complete(value) for value in measurement.reference_values()]
    events = [
        _complete(
            {
                "name": f"{EVENT_PREFIX}pcr{event.pcr}",
                "register": f"pcr{event.pcr}",
                "algorithm": BANK,
                "value": event.digest.hex(),
                "note": (event.description or event.id or event.name)[:256],
            }
        )
        for event in measurement.events
    ]
    return [*registers, *_distinct(events)]


def checked_value(value: object) -> JsonObject:
    """One value as a ReferenceValueSet lists it, with every default written out; raises BadValues."""
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("name", "value")):
        raise BadValues("bad-value", "a value is an object with the texts name and value")
    name, text, algorithm = value["name"], value["value"], value.get("algorithm")
    # A member with a typing error would otherwise be dropped, and the value count without the bound that its author meant.
    unknown = sorted(set(value) - _MEMBERS)
    kind = value.get("type", "Text")
    right = {
        "name": _NAME.match(name) is not None,
        # Empty is what evidence shows for a register that it lacks: a published empty text would accept a machine that measured
        # nothing.
        "value": 0 < len(text) <= 256,
        "algorithm": algorithm is None
        or (isinstance(algorithm, str) and len(text) == _SIZES.get(algorithm) and _HEX.match(text) is not None),
        "type": kind == "Text"
        or (kind == "Number" and _NUMBER.match(text) is not None)
        or (kind == "Boolean" and text in ("true", "false")),
        "state": value.get("state", "Current") in STATES,
        "single": isinstance(value.get("single", False), bool),
        "register": isinstance(value.get("register", ""), str) and len(value.get("register", "")) <= 32,
        "note": isinstance(value.get("note", ""), str) and len(value.get("note", "")) <= 256,
    }
    wrong = next((member for member, good in right.items() if not good), "")
    if unknown or wrong or kind not in TYPES:
        raise BadValues("bad-value", f"value {name[:64]!r}: member {wrong or (unknown or ['type'])[0]} is wrong")
    return _complete(value)


def _complete(value: Object) -> JsonObject:
    return {"state": "Current", "type": "Text", "single": False, **value}


def _distinct(values: Iterable[JsonObject]) -> list[JsonObject]:
    first: dict[tuple[str, str], JsonObject] = {}
    for value in values:
        first.setdefault((value["name"], value["value"]), value)
    return list(first.values())


def approval_label(approval: Object) -> str:
    """How people name an approval."""
    return str(object_name(approval))
