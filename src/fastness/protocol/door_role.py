"""The role that the certificate of a door names, and whether a caller may speak to it.

    URI:fastness://role/broker        one entry of subjectAltName, beside the names and addresses that callers dial

All doors have certificates of one authority, so a name alone proves that *a* door answers. Whoever took over a gate could listen
where machines expect the broker; the role is what tells the two apart. It is read strictly: exactly one URI, and exactly one that
is in the table. A URI is used because TLS libraries hand it over parsed, while a part of the subject would have to be told apart
from what people write there.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

PREFIX: Final = "fastness://role/"


class DoorRole(StrEnum):
    """The doors that have certificates."""

    GATE = "gate"
    BROKER = "broker"
    ENROLMENT = "enrolment"
    CONFIG_SERVER = "configserver"
    PAGE = "page"
    WEBHOOK = "webhook"

    @property
    def uri(self) -> str:
        """How a certificate says it."""
        return f"{PREFIX}{self.value}"


_BY_URI: Final = {role.uri: role for role in DoorRole}


def role_named(uris: Sequence[str]) -> DoorRole | None:
    """The role of a certificate with these URIs; None when it names none, another one, or more than one."""
    # With two roles in one certificate, each caller would read the one that it hopes for.
    return _BY_URI.get(uris[0]) if len(uris) == 1 else None
