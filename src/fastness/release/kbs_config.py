"""What a KbsConfig means here: the objects that its ConfigMaps stand for, and what is wrong with it.

    kbsResourcePolicyConfigMapName       policy.rego                          → AppraisalPolicy for */*/*
    kbsAttestationPolicyConfigMapName    default_cpu.rego, default.rego, …    → AppraisalPolicy for tpm, tdx, snp
    kbsRvpsRefValuesConfigMapName        reference-values.json                → ReferenceValueSet
    kbsSecretResources                   Secrets                              → default/<secret>/<key>

Names of what is derived follow from the KbsConfig's place, so two configs never write the same object. What the other fields
configure does not exist here (there is one broker, which knows its own ports and certificates); they are accepted and not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from fastness.attestation.policy.cases import proven_by_nothing
from fastness.attestation.values.from_images import BadValues
from fastness.attestation.values.rvps import values_of
from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.objects import ObjectName, condition, object_name, rfc3339

OWNER: Final = "fastness.dev/kbsconfig"
PLACE: Final = "fastness.dev/derived-from"
TEES: Final = ("tpm", "tdx", "snp")
RESOURCES: Final = "*/*/*"
# The reason of a policy whose newest text was refused, so that the one before it judges still.
OLDER: Final = "OlderVersion"
_RESOURCE_KEYS: Final = ("policy.rego", "resource-policy.rego")
_EVIDENCE_KEYS: Final = ("default_cpu.rego", "default.rego", "policy.rego")
_VALUE_KEYS: Final = ("reference-values.json",)

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Derived:
    """What a KbsConfig stands for until a time: objects by kind and name, or the reasons why it cannot be."""

    policies: dict[str, JsonObject] = field(default_factory=dict)
    sets: dict[str, JsonObject] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    until: datetime | None = None


def named_objects(config: Object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ConfigMaps and the Secrets that a KbsConfig names and that are read here."""
    spec = config.get("spec") or {}
    maps = ("kbsResourcePolicyConfigMapName", "kbsAttestationPolicyConfigMapName", "kbsRvpsRefValuesConfigMapName")
    return tuple(str(spec[name]) for name in maps if spec.get(name)), tuple(spec.get("kbsSecretResources") or ())


def derive(config: Object, maps: Mapping[str, Object], now: datetime) -> Derived:
    """What a KbsConfig stands for, given the ConfigMaps that exist; total."""
    place, spec, problems = object_name(config), config.get("spec") or {}, list[str]()
    policies: dict[str, JsonObject] = {}
    sets: dict[str, JsonObject] = {}
    until: datetime | None = None
    resource = _text(spec.get("kbsResourcePolicyConfigMapName"), maps, _RESOURCE_KEYS, problems)
    if resource is not None:
        made = _policy(place, "resource", RESOURCES, resource)
        policies[made["metadata"]["name"]] = made
    evidence = _text(spec.get("kbsAttestationPolicyConfigMapName"), maps, _EVIDENCE_KEYS, problems)
    for tee in TEES if evidence is not None else ():
        made = _policy(place, tee, tee, str(evidence))
        policies[made["metadata"]["name"]] = made
    values = _text(spec.get("kbsRvpsRefValuesConfigMapName"), maps, _VALUE_KEYS, problems)
    if values is not None:
        try:
            listed, until = _values(values, now)
            validity = {"validity": {"notAfter": rfc3339(until)}} if until is not None else {}
            made = _object(REFERENCE_VALUE_SET, place, "values", {"source": "import", "values": listed, **validity})
            sets[made["metadata"]["name"]] = made
        except (BadValues, JsonError) as error:
            problems.append(f"reference-values.json: {error.message}")
    # All or nothing: half of a config, the policy without the values that it asks for, would refuse machines that should pass, or
    # pass others.
    return Derived(policies, sets, until=until) if not problems else Derived(problems=tuple(problems))


def not_in_use(policy: Object) -> str | None:
    """Why a derived policy does not judge as it is written now; None when it does."""
    meta, target = policy.get("metadata") or {}, (policy.get("spec") or {}).get("for")
    active = condition(policy, "Active") or {}
    # The word of the controller is about an older text: what it says does not count for this one.
    if active.get("observedGeneration") != meta.get("generation"):
        return f"the policy for {target} is being tried"
    if active.get("status") == "True" and active.get("reason") != OLDER:
        return None
    refused = [
        state for kind in ("Parsed", "CasesPass") if (state := condition(policy, kind) or {}).get("status") == "False"
    ]
    why = (refused[0] if refused else active).get("message", "")
    return f"the policy for {target} is not in use: {why}"


def owner_label(place: ObjectName) -> str:
    """The label of everything that is derived from a KbsConfig."""
    # A label holds 63 characters of a small alphabet; namespace and name together may be longer.
    return sha256(str(place).encode()).hex[:32]


def _text(name: Any, maps: Mapping[str, Object], keys: tuple[str, ...], problems: list[str]) -> str | None:
    if not name:
        return None
    config_map = maps.get(str(name))
    if config_map is None:
        problems.append(f"the ConfigMap {name} does not exist")
        return None
    data = config_map.get("data") or {}
    text = next((data[key] for key in keys if isinstance(data.get(key), str)), None)
    if text is None:
        problems.append(f"the ConfigMap {name} has none of the keys {', '.join(keys)}")
    return text


def _policy(place: ObjectName, suffix: str, target: str, rego: str) -> JsonObject:
    return _object(APPRAISAL_POLICY, place, suffix, _spec(target, rego))


def _spec(target: str, rego: str) -> JsonObject:
    # A case that nobody wrote, so that the policy is tried at least once before it judges: it must refuse who proved nothing.
    return {"for": target, "rego": rego, "cases": [proven_by_nothing(target)], "active": True}


def _object(kind: Kind, place: ObjectName, suffix: str, spec: JsonObject) -> JsonObject:
    label = owner_label(place)
    meta = {
        "name": f"kbsconfig-{label[:16]}-{suffix}", "labels": {OWNER: label}, "annotations": {PLACE: str(place)},
    }  # fmt: skip
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


def _values(text: str, now: datetime) -> tuple[list[JsonObject], datetime | None]:
    """Values in any of the forms that are in use, and when the first of them ends; those that have ended are left out."""
    document = json.decode(text.encode())
    if isinstance(document, dict):
        return values_of(document), None
    if not isinstance(document, list):
        raise BadValues("unreadable", "it is neither an object of names nor a list of entries")
    named: dict[str, Any] = {}
    ends: list[datetime] = []
    for entry in document:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise BadValues("unreadable", "an entry is no object with a name")
        end = _end(entry.get("expiration"))
        # Values that have ended would come back to life with the validity of the set, which is written anew each time
        # (pitfall 21).
        if end is not None and end <= now:
            continue
        ends += [end] if end is not None else []
        named[entry["name"]] = _value(entry)
    return values_of(named), min(ends, default=None)


def _value(entry: JsonObject) -> Any:
    if "value" in entry:
        return entry["value"]
    hashes = entry.get("hash-value")
    if not isinstance(hashes, list) or not all(
        isinstance(hash_entry, dict) and isinstance(hash_entry.get("value"), str) for hash_entry in hashes
    ):
        raise BadValues("unreadable", f"{entry['name'][:64]!r} has neither a value nor hash values")
    return [hash_entry["value"] for hash_entry in hashes]


def _end(text: Any) -> datetime | None:
    if text is None:
        return None
    try:
        end = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise BadValues("unreadable", "the expiration of an entry is no time") from error
    # A time without a zone is two times for two readers, and the difference may be a day of trust.
    if end.tzinfo is None:
        raise BadValues("unreadable", "the expiration of an entry has no zone")
    return end
