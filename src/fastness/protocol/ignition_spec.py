"""The versions of the Ignition spec, in their order: what configs state, and what pointers and user-data are held to."""

from typing import Final, Literal

Version = Literal["2.2.0", "3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"]

LEGACY: Final[Version] = "2.2.0"
CURRENT: Final[Version] = "3.5.0"
SUPPORTED: Final[tuple[Version, ...]] = (LEGACY, "3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", CURRENT)
SPEC3: Final = SUPPORTED[1:]


def minor(version: Version) -> int:
    """The minor of a spec 3 version: 0 for 3.0.0, 5 for 3.5.0."""
    return int(version[2])
