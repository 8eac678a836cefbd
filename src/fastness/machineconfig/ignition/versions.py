"""The spec versions that are understood, and how a version string is read.

Two mistakes are kept apart because they need different answers: a string that is no version at all (`invalid-version`) and a
version that exists, or will exist, but is not supported here (`unknown-version`). 2.0.0 and 2.1.0 are read as 2.2.0, of
which they are subsets. Pre-releases and build metadata are never supported.
"""

import re
from typing import Final

from fastness.machineconfig.ignition.problems import UnsupportedVersion
from fastness.protocol.ignition_spec import LEGACY, SUPPORTED, Version

_READ_AS: Final[dict[str, Version]] = {"2.0.0": LEGACY, "2.1.0": LEGACY} | {version: version for version in SUPPORTED}
_SEMANTIC: Final = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
_HINT: Final = "use one of " + ", ".join(version.removesuffix(".0") for version in SUPPORTED)


def read_version(text: object) -> Version:
    """The supported version that a config states; raises `UnsupportedVersion`."""
    if isinstance(text, str) and (version := _READ_AS.get(text)) is not None:
        return version
    if isinstance(text, str) and len(text) <= 64 and _SEMANTIC.fullmatch(text):
        raise UnsupportedVersion(
            "unknown-version", f"spec version {text} is not supported", "ignition.version", hint=_HINT
        )
    raise UnsupportedVersion("invalid-version", "the spec version cannot be understood", "ignition.version", hint=_HINT)


def minor(version: Version) -> int:
    """The minor of a spec 3 version: 0 for 3.0.0, 5 for 3.5.0."""
    return int(version[2])
