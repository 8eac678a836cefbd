"""What one machine gets: the configuration of its pool with the NodeOverlays for it on top, put together by the config server.

    config = overlays.over(config, recipient)

Whoever lays overlays over a configuration decides what a machine runs, so it is done where the result is signed and nowhere else.
A broker that delivers from copies only asks whether there are any (`concern`), because a copy is the same for a whole pool.

* Who gets what is decided from the machine's uid and the properties in its token, never from anything else.
* A machine without overlays gets the bytes of its pool untouched, and others' overlays cost it nothing.
* Merged bytes are kept per configuration and set of overlay versions, up to a bound.
* An overlay that cannot be merged is no reason to boot a machine without it: the machine is told to come again (503).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fastness.attestation.verdict.distrust import about_claims
from fastness.crypto.digests import sha256
from fastness.http.refusals import Refusal
from fastness.kinds.kind import JsonObject
from fastness.kube.informers import Informer
from fastness.machineconfig.overlay.merged import overlay_bytes
from fastness.machineconfig.overlay.overlay import Overlay, Recipient, addressed, examine, matching
from fastness.machineconfig.serving import CannotServe
from fastness.observe import logs
from fastness.release.configs import Config
from fastness.runtime.cache import BoundedCache

MOST_KEPT: Final = 256
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_EXAMINED: Final = 1024
ADDRESSED: Final = "addressed"
_ETAG_HEX: Final = 32
_log = logs.logger("delivery")


def recipient(claims: Mapping[str, Any]) -> Recipient:
    """The machine that claims of a verified token speak of; nobody in particular without claims."""
    about = about_claims(claims)
    return Recipient(about.machine, about.properties)


class _Kept(NamedTuple):
    """Merged bytes, and the bytes of the pool that they were made from."""

    pool: bytes
    merged: Config


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
        """What this machine gets; raises Refusal."""
        objects = self._matching(who)
        if not objects:
            return config
        overlays = self._read(objects)
        key = (config.etag, tuple(overlay.version for overlay in overlays))
        last = self._kept.use(key)
        # By the bytes and not by the tag alone: a tag that somebody computed otherwise must not serve another pool's file.
        if last is None or last.pool != config.body:
            merged = self._merged(config, overlays, who)
            self._kept.put(key, _Kept(config.body, merged))
            return merged
        return last.merged._replace(name=config.name)

    def _merged(self, config: Config, overlays: Sequence[Overlay], who: Recipient) -> Config:
        try:
            body = overlay_bytes(config.body, overlays)
        except CannotServe as error:
            _log.warning("overlay.unusable", machine=who.machine, code=error.code, error=error, hint=error.hint)
            raise Refusal(
                503, "overlay-invalid", "a NodeOverlay for this machine cannot be merged: see its condition Valid"
            ) from error
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
