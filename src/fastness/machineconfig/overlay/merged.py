"""Fragments over the configuration of a pool: the bytes that one machine gets.

    overlay_bytes(body, overlays)     what a door hands out: a served document, and the overlays for this machine on top
    merged_object(body, overlays)     the same for a machine that runs: the rendered MachineConfig, overlays on top
    record = Laid.of(overlays)        what a machine boots with, as a file that travels in the same bytes
    record.over(config)               the rendered config with them on top: what the agent of that machine holds it to

The config server lays fragments over the answer of a pool, in whatever Ignition version that is. The document is brought to the
current version, merged as MachineConfigs are, and brought back.

A machine that boots gets an Ignition document, and beside it the config of its pool as it was rendered and the record of its
overlays: its agent makes of these what it holds the disk to, with the same function as the door. A machine that runs gets that
object at once. Both say in annotations which overlays are in it, and their digest: config and digest are what a node goes to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.machineconfig import ignition
from fastness.machineconfig.overlay.overlay import MOST_OVERLAYS, ORIGIN, Overlay
from fastness.machineconfig.render.merge import EMPTY, merge_documents
from fastness.machineconfig.serving import CannotServe, file_entry

RECORD_MODE: Final = 0o600
OVERLAY_HEX: Final = 32


@dataclass(frozen=True, slots=True)
class Laid:
    """The overlays of a machine: name, version and fragment of each, in order."""

    overlays: tuple[tuple[str, JsonObject], ...] = ()

    @classmethod
    def of(cls, overlays: Sequence[Overlay]) -> Laid:
        """From those of some overlays that can be merged."""
        return cls(tuple((overlay.version, overlay.document) for overlay in overlays if overlay.document is not None))

    @classmethod
    def read(cls, content: bytes) -> Laid:
        """From the file on a machine; raises ValueError."""
        try:
            entries = json.decode(content)["overlays"]
            return cls(tuple((str(entry["version"]), ignition.upgrade(entry["config"])) for entry in entries))
        except (JsonError, ignition.IgnitionError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the record of overlays is damaged: {error}") from error

    @property
    def digest(self) -> str:
        """One word for all of them, their order and what they say; empty for none."""
        return sha256(self.encoded()).hex[:OVERLAY_HEX] if self.overlays else ""

    @property
    def versions(self) -> tuple[str, ...]:
        """`name@digest` of each."""
        return tuple(version for version, _ in self.overlays)

    def encoded(self) -> bytes:
        """As the file on a machine."""
        return json.canonical(
            {"overlays": [{"version": version, "config": document} for version, document in self.overlays]}
        )

    def over(self, config: JsonObject) -> JsonObject:
        """A rendered MachineConfig with the overlays on top; the config itself when there are none."""
        if not self.overlays:
            return config
        spec, meta = config.get("spec") or {}, config.get("metadata") or {}
        notes = {names.CURRENT_OVERLAY: self.digest, names.OVERLAYS: " ".join(self.versions)}
        return {
            **config,
            "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), **notes}},
            "spec": {**spec, "config": self.document(spec.get("config") or EMPTY)},
        }

    def document(self, base: JsonObject) -> JsonObject:
        """A document of the current version with the overlays on top."""
        named = [(f"{ORIGIN}{version.partition('@')[0]}", fragment) for version, fragment in self.overlays]
        return merge_documents([("pool", base), *named])


def overlay_bytes(body: bytes, overlays: Sequence[Overlay]) -> bytes:
    """A served configuration with overlays on top, in its own version; raises CannotServe. Without overlays, the same bytes."""
    if not overlays:
        return body
    laid = _mergeable(overlays)
    try:
        served = ignition.parse(body)
        base, _ = ignition.translate(served, ignition.CURRENT)
        merged = _with_record(laid.document(base.body), laid)
        result, losses = ignition.translate(ignition.parse(merged), served.version)
    except ignition.IgnitionError as error:
        raise CannotServe(
            f"{', '.join(laid.versions)}: the merged config is not good: {error}", "correct them"
        ) from error
    if losses:
        text = "; ".join(str(loss) for loss in losses[:5])
        raise CannotServe(
            f"the overlays would lose something in Ignition {served.version}: {text}", "boot a newer image"
        )
    return ignition.to_json(result)


def merged_object(body: bytes, overlays: Sequence[Overlay]) -> bytes:
    """A rendered MachineConfig with overlays on top; raises CannotServe. Without overlays, the same bytes."""
    if not overlays:
        return body
    laid = _mergeable(overlays)
    try:
        merged = laid.over(json.decode(body))
        ignition.parse(merged["spec"]["config"])
    except (JsonError, ignition.IgnitionError) as error:
        raise CannotServe(
            f"{', '.join(laid.versions)}: the merged config is not good: {error}", "correct them"
        ) from error
    return json.encode(merged)


def overlay_in(config: JsonObject) -> str:
    """The digest of the overlays that are in a MachineConfig; empty for one as it was rendered."""
    return annotations_of(config).get(names.CURRENT_OVERLAY, "")


def versions_in(config: JsonObject) -> tuple[str, ...]:
    """`name@digest` of each overlay that is in a MachineConfig."""
    return tuple(annotations_of(config).get(names.OVERLAYS, "").split())


def _mergeable(overlays: Sequence[Overlay]) -> Laid:
    broken = [overlay.name for overlay in overlays if overlay.document is None]
    if broken or len(overlays) > MOST_OVERLAYS:
        what = f"{', '.join(broken)} cannot be merged" if broken else f"more than {MOST_OVERLAYS} match"
        raise CannotServe(f"of the NodeOverlays for this machine {what}", "see their condition Valid")
    return Laid.of(overlays)


def _with_record(document: JsonObject, laid: Laid) -> JsonObject:
    """The document with the record of its overlays; the encapsulated config stays the last file."""
    storage: Mapping[str, Any] = document.get("storage") or {}
    files = list(storage.get("files") or ())
    last = [entry for entry in files if entry.get("path") == names.ENCAPSULATED_FILE]
    rest = [entry for entry in files if entry.get("path") not in (names.ENCAPSULATED_FILE, names.OVERLAY_FILE)]
    record = file_entry(names.OVERLAY_FILE, laid.encoded(), RECORD_MODE)
    return {**document, "storage": {**storage, "files": [*rest, record, *last]}}
