"""What one machine gets besides the configuration of its pool: NodeOverlays.

    matching(overlays, who)      the overlays for a machine, in the order in which they are merged
    examine(overlay)             its fragment in the current Ignition version, and everything that is wrong with it

An overlay names machines by uid, or properties that a machine proved. Properties are those of a live verdict, as its token
carries them: labels and annotations, which a host may write, are never looked at. What was not proved equals nothing.

* Order is by rising priority, then by name; the last one wins, field by field, as with MachineConfigs.
* A fragment follows the rules for confidential pools, and some of its own: it must be complete in itself, because it is signed
  as a whole and the machine's agent keeps it up later: no content to be fetched, no `append`, no `ignition.config`, no users
  but `core`, none of the files that tell the agent what it has.

`merged` lays fragments over the bytes of a pool; `targets` says which overlays a node goes to. What a change of them does says
`rollout/overlay_plan`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import is_being_deleted, object_name
from fastness.kinds.trusted_execution.properties import IMAGE
from fastness.machineconfig.render import validate
from fastness.machineconfig.render.errors import Problem, fatal
from fastness.machineconfig.render.merge import Source
from fastness.machineconfig.serving import KUBECONFIG_FILE

Object = Mapping[str, Any]
AnyObject = TypeVar("AnyObject", bound=Mapping[str, Any])
MOST_BYTES: Final = 256 * 1024
MOST_OVERLAYS: Final = 32
DEFAULT_PRIORITY: Final = 100
DIGEST_HEX: Final = 12
ORIGIN: Final = "overlay:"
RESERVED: Final = frozenset({
    names.NODE_ANNOTATIONS_FILE, names.ENCAPSULATED_FILE, names.CURRENT_CONFIG_FILE, names.OVERLAY_FILE, names.FORCE_FILE,
    names.CONTENT_FILE, KUBECONFIG_FILE,
})  # fmt: skip
_DATA: Final = "data:"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A machine that proved itself: its uid, and what it proved."""

    machine: str
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overlay:
    """A NodeOverlay, read once. `document` is None when it cannot be merged; `version` changes with its fragment."""

    name: str
    digest: str
    document: JsonObject | None
    problems: tuple[Problem, ...] = ()

    @property
    def version(self) -> str:
        """Its name and what of it: `name@digest`."""
        return f"{self.name}@{self.digest}"

    @property
    def source(self) -> Source:
        """The overlay as one more config that goes in, for blame."""
        return Source(f"{ORIGIN}{self.name}", {}, self.document)


def is_member(machine: Object) -> bool:
    """Whether a Machine enrolled and is there to stay."""
    return not is_being_deleted(machine) and bool(_member(machine.get("status"), "keyThumbprint"))


def recipient_of(machine: Object) -> Recipient:
    """A Machine as the control plane knows it: its uid, and what its last authentic evidence proved. Doors ask tokens instead."""
    uid, properties = _member(machine.get("metadata"), "uid"), _member(machine.get("status"), "properties")
    return Recipient(str(uid or ""), properties if isinstance(properties, Mapping) else {})


def matches(overlay: Object, who: Recipient) -> bool:
    """Whether a machine gets an overlay; one that cannot be read is for nobody."""
    match = _member(overlay.get("spec"), "match")
    machines, properties = _member(match, "machines"), _member(match, "properties")
    if isinstance(machines, list):
        return properties is None and bool(who.machine) and who.machine in machines
    if not isinstance(properties, Mapping) or not properties:
        return False
    return all(_proved(who.properties.get(name, ""), name, condition) for name, condition in properties.items())


def addressed(overlay: Object) -> list[str]:
    """Whom an overlay may be for, as an index: uids of machines, or "" when what they proved decides."""
    machines = _member(_member(overlay.get("spec"), "match"), "machines")
    return [str(machine) for machine in machines] if isinstance(machines, list) else [""]


def _proved(value: str, name: str, condition: Any) -> bool:
    """Whether a property has a value; a machine may have measured the values of several images."""
    return bool(value) and (value == condition or (name == IMAGE and condition in value.split(",")))


def order_of(overlay: Object) -> tuple[int, str]:
    """What overlays are sorted by."""
    priority = _member(overlay.get("spec"), "priority")
    return priority if type(priority) is int else DEFAULT_PRIORITY, object_name(overlay).name


def matching(overlays: Iterable[AnyObject], who: Recipient) -> list[AnyObject]:
    """The overlays that a machine gets, in the order of merging."""
    return sorted((overlay for overlay in overlays if matches(overlay, who)), key=order_of)


def examine(overlay: Object) -> Overlay:
    """Read and judge an overlay; total."""
    name = object_name(overlay).name
    raw = _member(overlay.get("spec"), "config")
    if not isinstance(raw, Mapping):
        wrong = Problem(name, "spec.config", "shape", "is missing or not an object", "write an Ignition fragment there")
        return Overlay(name, _digest(raw), None, (wrong,))
    size = len(json.encode(raw))
    if size > MOST_BYTES:
        reason = f"has {size} bytes, an overlay may have {MOST_BYTES}"
        large = Problem(name, "spec.config", "too-large", reason, "put what many machines share into a MachineConfig")
        return Overlay(name, _digest(raw), None, (large,))
    # The role label is that of a MachineConfig: an overlay has none, and needs none.
    posing = {"metadata": {"name": name, "labels": {names.ROLE_LABEL: ""}}, "spec": {"config": raw}}
    examined = validate.examine(posing, TrustModel.CONFIDENTIAL_CLUSTER)
    own = _own_rules(name, examined.document) if examined.document else ()
    problems = (*_match_rules(name, _member(overlay.get("spec"), "match")), *examined.problems, *own)
    return Overlay(name, _digest(raw), None if fatal(problems) else examined.document, problems)


def _digest(raw: Any) -> str:
    return sha256(json.canonical(raw)).hex[:DIGEST_HEX]


def _match_rules(name: str, match: Any) -> Iterator[Problem]:
    machines, properties = _member(match, "machines"), _member(match, "properties")
    if bool(machines) == bool(properties) or not isinstance(machines or [], list):
        reason = "must name machines, or properties that they prove, and not both"
        yield Problem(name, "spec.match", "match", reason, "give match.machines or match.properties")


def _own_rules(name: str, document: Object) -> Iterator[Problem]:
    """What is good in a MachineConfig and not here."""
    for member in (document.get("ignition") or {}).keys() - {"version"}:
        place, reason = f"spec.config.ignition.{member}", "leads outside of what is signed"
        yield Problem(name, place, "not-self-contained", reason, "write everything into the fragment")
    storage = document.get("storage") or {}
    for kind in ("files", "directories", "links"):
        for index, entry in enumerate(storage.get(kind) or ()):
            yield from _node(name, f"spec.config.storage.{kind}[{index}]", kind, entry)
    for index, user in enumerate((document.get("passwd") or {}).get("users") or ()):
        if user.get("name") != names.CORE_USER:
            reason = f"{user.get('name')!r}: agents look after the user {names.CORE_USER} alone"
            yield Problem(name, f"spec.config.passwd.users[{index}]", "unmanaged-user", reason, "add it in the image")


def _node(name: str, place: str, kind: str, entry: Object) -> Iterator[Problem]:
    path = posixpath.normpath("/" + str(entry.get("path") or "").lstrip("/"))
    # A link in the place of a directory would move the reserved file to where the link leads.
    hides = kind == "links" and any(reserved.startswith(f"{path}/") for reserved in RESERVED)
    if path in RESERVED or hides:
        reason = f"{path} tells the agent what the machine has, and is written by the control plane"
        yield Problem(name, f"{place}.path", "reserved-path", reason, "use another path")
    if entry.get("append"):
        reason = f"{path}: append cannot be applied twice"
        yield Problem(name, f"{place}.append", "append", reason, "give the whole content in `contents`")
    source = str((entry.get("contents") or {}).get("source") or _DATA)
    if kind == "files" and not source.startswith(_DATA):
        reason = f"{path}: the content would be fetched from somewhere that nobody signed"
        yield Problem(name, f"{place}.contents.source", "not-self-contained", reason, "write it as a data URL")


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None
