"""What machines may measure while an image replaces another: the same image under every boot loader that it may meet.

    mark = mark_of(systemd_boot)            what of a boot loader enters a measurement: its hash, and its version
    under(measured, stub, mark)             what the image measures when that boot loader starts it

A machine pulls the new image beside the old one, boots it once, and keeps it when it is healthy and attested. Its boot loader
stays the one that it was installed with (docs/adr/0074, 0108). So the new image runs under the boot loader of an older one, for
as long as the machine lives, and one that goes back runs the old image under whatever it was installed with. What the images
share, the firmware and its keys and the partition table, does not change on the way. Each state is a whole; none mixes two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.formats.evidence.pe.loader import parse_loader
from fastness.images.loader import LOADERS
from fastness.images.measure import authenticode
from fastness.images.measurement import Measurement

LOADER_EVENT: Final = "Pcr4Loader"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)
_NAME: Final = re.compile(r"[!-~]{1,64}\Z", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class LoaderMark:
    """A boot loader as measurements know it: the version of systemd-boot, what it calls itself, its Authenticode hash in hex."""

    version: int
    name: str
    digest: str

    @property
    def label(self) -> str:
        """For the name of a state: unlike that of any other boot loader, and readable."""
        return f"under {self.version} {self.digest[:12]}"

    def to_json(self) -> dict[str, Any]:
        """As it is noted beside values."""
        return {"version": self.version, "name": self.name, "authenticode": self.digest}


def mark_of(loader: bytes) -> LoaderMark:
    """The mark of a boot loader; raises ImageError where it is no systemd-boot."""
    parsed = parse_loader(loader)
    return LoaderMark(parsed.version, parsed.name, authenticode(parsed.image).hex())


def read_mark(document: object) -> LoaderMark | None:
    """A mark as it was noted; None for anything else."""
    if not isinstance(document, Mapping):
        return None
    version, name, digest = (document.get(key) for key in ("version", "name", "authenticode"))
    if not isinstance(version, int) or not isinstance(name, str) or not isinstance(digest, str):
        return None
    return LoaderMark(version, name, digest) if _NAME.match(name) and _DIGEST.match(digest) else None


def under(measured: Measurement, stub: int, mark: LoaderMark) -> Measurement | None:
    """What an image with a boot stub of this version measures under another boot loader; None where nobody compared the two.

    `measured` is what it measures under one that was booted with the same stub, which passes the command line on in the same way.
    """
    rules = LOADERS.get(mark.version)
    if rules is None or stub not in rules.stubs:
        return None
    text = f"the boot loader, systemd-boot {mark.name}"
    events = [
        replace(event, digest=bytes.fromhex(mark.digest), description=text) if event.id == LOADER_EVENT else event
        for event in measured.events
    ]
    return Measurement.of(list(measured.registers), events, measured.notes)
