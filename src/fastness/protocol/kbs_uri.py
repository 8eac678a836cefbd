"""Addresses of resources as guests write them: `kbs://[address]/repository/type/tag`.

An empty address means the broker that the guest is configured with; `kbs+<plugin>://` names another plugin of it. All three
segments are there, made of letters, digits, dots, dashes and underscores, none of dots alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import FormatError

MAX_URI: Final = 1024
_URI: Final = re.compile(
    r"kbs(?:\+(?P<plugin>[a-z0-9-]{1,64}))?://(?P<address>[A-Za-z0-9.:\[\]-]{0,255})"
    r"/(?P<repository>[A-Za-z0-9._-]{1,128})/(?P<type>[A-Za-z0-9._-]{1,128})/(?P<tag>[A-Za-z0-9._-]{1,128})\Z",
    re.ASCII,
)


class UriError(FormatError):
    """A text that is no address of a resource."""

    def __init__(self, message: str) -> None:
        super().__init__("bad-kbs-uri", message, hint="Write it as kbs:///repository/type/tag.")


@dataclass(frozen=True, slots=True)
class KbsUri:
    """The address of one resource."""

    repository: str
    type: str
    tag: str
    address: str = ""
    plugin: str = ""

    def __str__(self) -> str:
        scheme = f"kbs+{self.plugin}" if self.plugin else "kbs"
        return f"{scheme}://{self.address}/{self.path}"

    @property
    def path(self) -> str:
        """The three segments."""
        return f"{self.repository}/{self.type}/{self.tag}"


def parse_uri(text: str) -> KbsUri:
    """Read an address; raises UriError."""
    found = _URI.match(text) if len(text) <= MAX_URI else None
    if found is None or any(found[name].strip(".") == "" for name in ("repository", "type", "tag")):
        raise UriError("this is no address of a resource")
    return KbsUri(found["repository"], found["type"], found["tag"], found["address"], found["plugin"] or "")
