"""Which Ignition spec a boot image reads, by its release.

    release_in("projects/rhcos-cloud/global/images/rhcos-418-94-202501221327-0-gcp-x86-64")   "418.94.202501221327-0"
    newest_spec("418.94.202501221327-0")                                                      "3.4.0"

Ignition reads the spec that its release made stable and all earlier ones of spec 3: 3.0 with Ignition 2.0, 3.1 with 2.3, 3.2
with 2.7, 3.3 with 2.11, 3.4 with 2.15, 3.5 with 2.20 (coreos.github.io/ignition/specs). Which Ignition is in an image:

| image | release | reads | because |
| --- | --- | --- | --- |
| RHCOS, SCOS of 4.1 to 4.5 | `41.…` to `45.…` | 2.2.0 | Ignition 0.35 |
| of 4.6 | `46.82.…` | 3.1.0 | its manual says so |
| of 4.7 to 4.13 | `47.…` to `413.…` | 3.2.0 | release notes of 4.7; Butane for 4.8 to 4.13 |
| of 4.14 to 4.18 | `414.…` to `418.…` | 3.4.0 | Butane for 4.14 to 4.18 |
| of 4.19 and later | `419.…`, or `9.6.…` after the RHEL inside | 3.5.0 | Butane for 4.19 to 4.21 |
| Fedora CoreOS | `39.20231101.3.0` | by its Fedora | the first Fedora all of whose builds came after that Ignition |

These are lower bounds: an image may read more, and then loses nothing by an older pointer. A number that this table does not know
is no guess: whoever knows better says so with an annotation.
"""

from __future__ import annotations

import re
from typing import Final

from fastness.protocol.ignition_spec import CURRENT, LEGACY, Version

# 418.94.202501221327-0; in names of clouds dots become hyphens. Azure's marketplace has 419.6.20250523 and 413.92.2023101700.
_BY_OPENSHIFT: Final = re.compile(
    r"(?<![0-9])(4[0-9]{1,2})[.-]([0-9]{1,3})[.-](20[0-9]{6,10})(?:[.-]([0-9]{1,3}))?(?![0-9])"
)
_BY_RHEL: Final = re.compile(
    r"(?<![0-9])(?<![0-9][.-])(9|10)[.-]([0-9]{1,2})[.-](20[0-9]{6})(?:[.-]([0-9]{1,3}))?(?![0-9])"
)
_BY_FEDORA: Final = re.compile(r"(?<![0-9])([3-9][0-9])[.-](20[0-9]{6})[.-]([0-9]{1,2})[.-]([0-9]{1,3})(?![0-9])")
_MINORS: Final[tuple[tuple[int, Version], ...]] = (
    (19, "3.5.0"),
    (14, "3.4.0"),
    (7, "3.2.0"),
    (6, "3.1.0"),
    (1, LEGACY),
)
_FEDORAS: Final[tuple[tuple[int, Version], ...]] = (
    (42, "3.5.0"), (39, "3.4.0"), (35, "3.3.0"), (34, "3.2.0"), (33, "3.1.0"), (30, "3.0.0"),
)  # fmt: skip
MAX_NAME: Final = 1024


def release_in(image: str) -> str:
    """The release in the name of an image, in the form of stream metadata; empty when there is none."""
    # What a machine set names is somebody's text: nothing is looked for in more of it than a name has.
    text = image[:MAX_NAME]
    if match := _BY_FEDORA.search(text):
        return ".".join(match.groups())
    if match := _BY_OPENSHIFT.search(text) or _BY_RHEL.search(text):
        major, minor, build, again = match.groups()
        return f"{major}.{minor}.{build}" + (f"-{again}" if again else "")
    return ""


def newest_spec(release: str) -> Version | None:
    """The newest Ignition spec that every image of a release reads; None for a release that this table does not know."""
    if match := _BY_FEDORA.fullmatch(release):
        return _first(_FEDORAS, int(match[1]))
    if match := _BY_OPENSHIFT.fullmatch(release):
        return _first(_MINORS, int(match[1][1:]))
    # Images are named after the RHEL inside since 4.19.
    return CURRENT if _BY_RHEL.fullmatch(release) else None


def _first(rows: tuple[tuple[int, Version], ...], number: int) -> Version | None:
    return next((version for least, version in rows if number >= least), None)
