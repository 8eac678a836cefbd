"""What one machine gets: the configuration of its pool with the NodeOverlays for it on top, put together by the config server.

    config = overlays.over(config, recipient)                       a machine that boots
    config = overlays.over_rendered(config, recipient, digest)      one that runs, and was told to go to these overlays

Whoever lays overlays over a configuration decides what a machine runs, so it is done where the result is signed and nowhere else.
A broker that delivers from copies only asks whether there are any (`concern`), because a copy is the same for a whole pool.

* Who gets what is decided from the machine's uid and the properties in its token, never from anything else.
* A machine that runs names the overlays that it was told to go to. It gets these or nothing: the rollout counts who changes, and
  another set than the one that it chose would be a change that nobody counted. Where they changed since, it waits (503).
* A machine without overlays gets the bytes of its pool untouched, and others' overlays cost it nothing.
* Merged bytes are kept per configuration and set of overlay versions, up to a bound.
* An overlay that cannot be merged is no reason to boot a machine without it: the machine is told to come again (503).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fastness.attestation.verdict.distrust import about_claims
from fastness.crypto.digests import sha256
from fastness.http.refusals import Refusal
from fastness.kinds.kind import JsonObject
from fastness.kube.informers import Informer
from fastness.machineconfig.overlay.merged import merged_object, overlay_bytes
from fastness.machineconfig.overlay.overlay import Overlay, Recipient, addressed, examine, matching
from fastness.machineconfig.overlay.targets import overlays_of
from fastness.machineconfig.serving import CannotServe
from fastness.observe import logs
from fastness.release.configs import Config
from fastness.runtime.cache import BoundedCache

MOST_KEPT: Final = 256
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_EXAMINED: Final = 1024
ADDRESSED: Final = "addressed"
_ETAG_HEX: Final = 32
Merge = Callable[[bytes, Sequence[Overlay]], bytes]
_log = logs.logger("delivery")


def recipient(claims: Mapping[str, Any]) -> Recipient:
    """The machine that claims of a verified token speak of; nobody in particular without claims."""
    about = about_claims(claims)
    return Recipient(about.machine, about.properties)


class _Kept(NamedTuple):
    """Merged bytes, and the bytes of the pool that they were made from."""

    pool: bytes
    merged: Config


def _unusable(who: Recipient, reason: str) -> Refusal:
    """What a machine is told whose overlays cannot be merged; the log has why."""
    _log.warning("overlay.unusable", machine=who.machine, error=reason)
    return Refusal(503, "overlay-invalid", "a NodeOverlay for this machine cannot be merged: see its condition Valid")


class Overlays:
    """Lays the overlays of a cluster over configurations of pools."""

    def __init__(self, overlays: Informer) -> None:
        self._overlays = overlays
        overlays.add_index(ADDRESSED, addressed)
        self._examined: dict[str, tuple[JsonObject, Overlay]] = {}
        self._kept = BoundedCache[tuple[bytes, tuple[str, ...]], _Kept](
            MOST_KEPT, heaviest=MOST_BYTES, weigh=lambda entry: len(entry.merged.body)
        )

    def concern(self, who: Recipient) -> bool:
        """Whether there is an overlay for this machine."""
        return bool(self._matching(who))

    def _matching(self, who: Recipient) -> Sequence[JsonObject]:
        candidates = self._overlays.by_index(ADDRESSED, "")
        if who.machine:
            candidates = [*candidates, *self._overlays.by_index(ADDRESSED, who.machine)]
        return matching(candidates, who) if candidates else ()

    def over(self, config: Config, who: Recipient) -> Config:
        """What this machine boots with; raises Refusal."""
        overlays = self._read(self._matching(who))
        return self._laid(config, overlays, who, overlay_bytes) if overlays else config

    def over_rendered(self, config: Config, who: Recipient, digest: str) -> Config:
        """The rendered config for a machine that runs and was told to go to overlays with this digest; raises Refusal."""
        overlays = self._read(self._matching(who))
        present = overlays_of(overlays)
        if present is None:
            raise _unusable(who, "they cannot be merged")
        if present != digest:
            raise Refusal(503, "overlay-changed", "the NodeOverlays of this machine are others by now: it is told anew")
        return self._laid(config, overlays, who, merged_object) if overlays else config

    def _laid(self, config: Config, overlays: Sequence[Overlay], who: Recipient, merge: Merge) -> Config:
        key = (config.etag, tuple(overlay.version for overlay in overlays))
        last = self._kept.use(key)
        # By the bytes and not by the tag alone: a tag that somebody computed otherwise must not serve another pool's file.
        if last is None or last.pool != config.body:
            merged = self._merged(config, overlays, who, merge)
            self._kept.put(key, _Kept(config.body, merged))
            return merged
        return last.merged._replace(name=config.name)

    def _merged(self, config: Config, overlays: Sequence[Overlay], who: Recipient, merge: Merge) -> Config:
        try:
            body = merge(config.body, overlays)
        except CannotServe as error:
            raise _unusable(who, error.message) from error
        etag = b'"%b"' % sha256(body).hex[:_ETAG_HEX].encode()
        return Config(body, etag, config.name, tuple(overlay.version for overlay in overlays))

    def _read(self, objects: Iterable[JsonObject]) -> list[Overlay]:
        """Overlays as they are, each read once: an informer never changes an object, it puts another in its place."""
        if len(self._examined) > MOST_EXAMINED:
            self._examined.clear()
        overlays: list[Overlay] = []
        for obj in objects:
            name = str(obj["metadata"]["name"])
            held = self._examined.get(name)
            if held is None or held[0] is not obj:
                held = self._examined[name] = (obj, examine(obj))
            overlays.append(held[1])
        return overlays
