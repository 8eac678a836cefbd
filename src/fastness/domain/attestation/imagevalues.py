"""From an approved image to reference values.

An ApprovedImage names an image by digest; what a machine measures when it boots it stands in an annotation, as a manifest:

    {"pcrs": [{"id": 4, "value": "…", "events": [{"name", "pcr", "hash", "id"}]}], "values": [{"name", "value", …}]}

`pcrs` is what `fastness measure` prints and what the label `org.coreos.pcrs` of an image holds; `values` adds what a TPM does not
measure, such as the launch measurement of SEV-SNP, as a ReferenceValueSet lists them. One of the two is enough.

* All approvals of one image make one set, named after the digest. The set is written as a whole, or not at all.
* The events of a register become values as well. No policy sees them; they let a refusal say whose boot loader was started.
* An approval ends: on the day that it names, or a year after it was made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.domain.attestation.errors import BadValues
from fastness.domain.attestation.values import EVENT_PREFIX, IMAGE
from fastness.domain.osimage.errors import BadManifest
from fastness.domain.osimage.measurement import BANK, Measurement, parse_manifest
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.model.fastness_dev.reference_values import REFERENCE_VALUE_SET, STATES, TYPES
from fastness.model.kind import JsonObject
from fastness.model.objects import annotations_of, metadata, object_name, rfc3339

MEASUREMENTS: Final = "fastness.dev/measurements"
LABEL: Final = "org.coreos.pcrs"
VALID_UNTIL: Final = "fastness.dev/valid-until"
LIFETIME: Final = timedelta(days=365)
MAX_VALUES: Final = 1024
_DIGEST: Final = re.compile(r"@sha256:([0-9a-f]{64})\Z", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}\Z", re.ASCII)
_HEX: Final = re.compile(r"[0-9a-f]+\Z", re.ASCII)
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}\Z", re.ASCII)
_SIZES: Final = {"sha1": 40, "sha256": 64, "sha384": 96, "sha512": 128}
_MEMBERS: Final = frozenset({"name", "register", "algorithm", "value", "state", "type", "single", "note"})
Object = Mapping[str, Any]


def set_name(image: str) -> str:
    """The name of the set that an image's values are kept in; raises BadValues without a digest."""
    found = _DIGEST.search(image)
    if found is None:
        raise BadValues("no-digest", f"{image} names no digest", "Approve the image as name@sha256:….")
    return f"image-{found[1][:20]}"


def set_of_image(image: str, approvals: Sequence[Object]) -> JsonObject:
    """The ReferenceValueSet of an image with these approvals, at least one; raises BadValues."""
    values: dict[tuple[str, str], JsonObject] = {}
    for approval in approvals:
        for value in values_of_approval(approval):
            values.setdefault((value["name"], value["value"]), value)
    if not values:
        raise BadValues(
            "no-measurements",
            "nobody said what a machine measures when it boots the image",
            "Approve it with `fastness image approve`, which measures it or reads a manifest.",
        )
    if len(values) > MAX_VALUES:
        raise BadValues("too-many-values", f"{len(values)} values are more than {MAX_VALUES}", "Leave out events.")
    return {
        "apiVersion": REFERENCE_VALUE_SET.api_version,
        "kind": REFERENCE_VALUE_SET.kind,
        "metadata": {"name": set_name(image)},
        "spec": {
            "source": IMAGE,
            "image": image,
            "values": [values[key] for key in sorted(values)],
            # No beginning: it counts at once, whatever the clocks of verifiers say.
            "validity": {"notAfter": rfc3339(max(end_of(approval) for approval in approvals))},
        },
    }


def values_of_approval(approval: Object) -> list[JsonObject]:
    """The values that an ApprovedImage carries in its annotations; raises BadValues when they cannot be read."""
    notes = annotations_of(approval)
    found: list[JsonObject] = []
    for key in (MEASUREMENTS, LABEL):
        if key not in notes:
            continue
        try:
            manifest = json.decode(str(notes[key]).encode())
        except JsonError as error:
            raise BadValues(
                "unreadable", f"annotation {key} is not JSON: {error}", "Approve the image again."
            ) from error
        found += values_of_manifest(manifest)
    return found


def end_of(approval: Object) -> datetime:
    """When an approval ends; raises BadValues."""
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


def values_of_manifest(manifest: object) -> list[JsonObject]:
    """The values in a manifest: registers, what explains them, and whatever else it lists; raises BadValues."""
    if not isinstance(manifest, dict) or not {"pcrs", "values"} & set(manifest):
        raise BadValues("not-a-manifest", "a manifest is an object with a list pcrs, a list values, or both")
    found: list[JsonObject] = []
    if "pcrs" in manifest:
        try:
            found += values_of_measurement(parse_manifest(manifest))
        except BadManifest as error:
            raise BadValues(error.code, error.message, error.hint) from error
    listed = manifest.get("values", [])
    if not isinstance(listed, list):
        raise BadValues("not-a-manifest", "the member values of a manifest is a list")
    return [*found, *(checked_value(value) for value in listed)]


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
    unknown = sorted(set(value) - _MEMBERS)
    kind = value.get("type", "Text")
    right = {
        "name": _NAME.match(name) is not None,
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
