"""The list of packages that dpkg keeps (`/var/lib/dpkg/status`): which are installed, in which version.

    installed_packages(data)        name:architecture → version

Paragraphs of `Field: value`, an empty line between two (deb-control(5)). Only what is wholly installed counts. Total: a paragraph
that lacks a field is no package.
"""

from __future__ import annotations

import re
from typing import Final

MAX_PACKAGES: Final = 100_000
_FIELD: Final = re.compile(rb"^(Package|Status|Version|Architecture):[ \t]*([!-~][ -~]{0,255})$", re.MULTILINE)
_INSTALLED: Final = b"installed"


def installed_packages(data: bytes) -> dict[str, str]:
    """The packages of a list, by name, with the architecture where it is not that of all."""
    packages: dict[str, str] = {}
    for paragraph in data.split(b"\n\n"):
        fields = {match[1]: match[2].strip().decode("ascii") for match in _FIELD.finditer(paragraph)}
        name, version = fields.get(b"Package"), fields.get(b"Version")
        state = fields.get(b"Status", "").split()
        if name and version and state[-1:] == [_INSTALLED.decode()] and len(packages) < MAX_PACKAGES:
            architecture = fields.get(b"Architecture", "all")
            packages[name if architecture == "all" else f"{name}:{architecture}"] = version
    return packages
