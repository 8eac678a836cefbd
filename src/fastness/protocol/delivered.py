"""A configuration that the key broker delivers: the question a machine adds to its request, and what lies in the sealed answer.

    GET /kbs/v0/resource/pool/<pool>/config?nonce=<text>&accept=<Accept header of Ignition>     a machine that boots
    GET /kbs/v0/resource/pool/<pool>/config?nonce=<text>&rendered=<name>[@<overlays>]           one that runs
    → sealed to the key of the boot: {"config": <base64>, "signature": <text>, "copy"?: {rendered, machine, nonce}}

The signature is the one that the gate sends as `Fastness-Signature` (`protocol.config_proof`), over the bytes of the
config, for the nonce of this request. A machine that runs names what its node goes to: a rendered config, and after an `@` the
digest of the NodeOverlays on top if it has any; what it gets is signed under that name. Where the broker delivers from a copy,
the signature is about a pool and a rendered config, and `copy` says which machine and which request the broker sealed it for.

* Total and strict: a value or `DeliveredError`; other members, missing ones and repeated ones are refused.
* Every text has a bound before it is decoded.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from fastness.formats import json
from fastness.formats.errors import FormatError, JsonError

MAX_ENVELOPE: Final = 48 * 1024 * 1024
MAX_SIGNATURE: Final = 1024
MAX_ACCEPT: Final = 256
MAX_RENDERED: Final = 286  # a name of 253 characters, and a digest
_RENDERED: Final = re.compile(r"rendered-[a-z0-9]([a-z0-9.-]*[a-z0-9])?(@[0-9a-f]{32})?\Z", re.ASCII)
# Sixteen characters hold 96 bits: a shorter number might come again, and an old answer with it.
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{16,128}\Z", re.ASCII)
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+\Z", re.ASCII)
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_ENVELOPE, max_depth=3)


class DeliveredError(FormatError):
    """A question or an answer of delivery that cannot be understood."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Use an agent and a broker of the same release.")


@dataclass(frozen=True, slots=True)
class Question:
    """What a machine adds to the request: a nonce of its own; which configurations its Ignition reads, or which one it needs."""

    nonce: str
    accept: str = ""
    rendered: str = ""

    def query(self) -> str:
        """The query of the request."""
        more = {"accept": self.accept, "rendered": self.rendered}
        return urlencode({"nonce": self.nonce, **{name: value for name, value in more.items() if value}})


@dataclass(frozen=True, slots=True)
class Delivered:
    """A configuration and the statement of the cluster about it."""

    config: bytes
    signature: str
    sealed: Sealed | None = None


@dataclass(frozen=True, slots=True)
class Sealed:
    """What the broker says of a copy, in the seal: its rendered config, the machine it is for, and the nonce of the request."""

    rendered: str
    machine: str
    nonce: str


def parse_question(query: Mapping[str, str]) -> Question:
    """Read the query of a request; raises DeliveredError."""
    strange = sorted(set(query) - {"nonce", "accept", "rendered"})
    if strange:
        raise DeliveredError("unknown-parameter", f"unknown parameter {strange[0][:64]!r}", strange[0][:64])
    nonce, accept = query.get("nonce", ""), query.get("accept", "")
    if _NONCE.match(nonce) is None:
        raise DeliveredError("bad-nonce", "nonce is 16 to 128 characters of base64url", "nonce")
    if accept and (len(accept) > MAX_ACCEPT or _PRINTABLE.match(accept) is None):
        raise DeliveredError("bad-accept", f"accept is at most {MAX_ACCEPT} printable characters", "accept")
    return Question(nonce, accept, parse_rendered(query))


def parse_rendered(query: Mapping[str, str]) -> str:
    """The rendered config that a query names, empty without one; raises DeliveredError."""
    rendered = query.get("rendered")
    if rendered is not None and (len(rendered) > MAX_RENDERED or _RENDERED.match(rendered) is None):
        raise DeliveredError(
            "bad-rendered", "rendered is the name of a rendered MachineConfig, and @ with a digest", "rendered"
        )
    return rendered or ""


def envelope(delivered: Delivered) -> bytes:
    """The answer before it is sealed."""
    config = base64.b64encode(delivered.config).decode("ascii")
    copy = delivered.sealed
    statement = {"rendered": copy.rendered, "machine": copy.machine, "nonce": copy.nonce} if copy else None
    return json.encode(
        {"config": config, "signature": delivered.signature, **({"copy": statement} if statement else {})}
    )


def parse_envelope(data: bytes) -> Delivered:
    """Read an answer that was opened; raises DeliveredError."""
    try:
        value, repeated = json.decode_reporting_duplicates(data, _LIMITS)
    except JsonError as error:
        raise DeliveredError(error.code, f"the answer is not JSON: {error.message}") from error
    if not isinstance(value, dict) or value.keys() - {"copy"} != {"config", "signature"} or repeated:
        raise DeliveredError("bad-envelope", "the answer is an object of config, signature and perhaps copy, each once")
    sealed = _sealed(value["copy"]) if "copy" in value else None
    return Delivered(_config(value["config"]), _signature(value["signature"]), sealed)


def _sealed(value: Any) -> Sealed:
    names = ("rendered", "machine", "nonce")
    if not isinstance(value, dict) or value.keys() != set(names):
        raise DeliveredError("bad-copy", f"copy is an object of {', '.join(names)}", "copy")
    if not all(isinstance(value[name], str) and len(value[name]) <= MAX_RENDERED for name in names):
        raise DeliveredError("bad-copy", f"its members are texts of at most {MAX_RENDERED} characters", "copy")
    return Sealed(value["rendered"], value["machine"], value["nonce"])


def _config(value: Any) -> bytes:
    if not isinstance(value, str):
        raise DeliveredError("bad-config", "config is text", "config")
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise DeliveredError("bad-base64", "config is not standard base64", "config") from error


def _signature(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_SIGNATURE or _PRINTABLE.match(value) is None:
        raise DeliveredError("bad-signature", f"signature is at most {MAX_SIGNATURE} printable characters", "signature")
    return value
