"""The endorsement key of a TPM, and the certificates that its maker put into the TPM's memory.

The key follows from the TPM's seed and the TCG's default template, so it is made again when it is not persistent. It must be the
one that the certificate in the TPM's memory speaks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from fastness.agent.host.errors import CommandFailed, TpmFailure
from fastness.agent.host.tee.tpm_commands import TpmCommands
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.credential import EndorsementKey
from fastness.formats.evidence.tpm.public import parse_public

# Indices of the TPM's memory by the TCG's EK Credential Profile: certificates of the default templates, and those above them.
_CHAIN: Final = range(0x01C00100, 0x01C00200)


class _Place(NamedTuple):
    """Where an endorsement key of the default templates has its certificate and, if it is persistent, its handle."""

    algorithm: str
    certificate: int
    handle: int


_PLACES: Final = (_Place("rsa", 0x01C00002, 0x81010001), _Place("ecc", 0x01C0000A, 0x81010002))


class TpmEndorsement:
    """The endorsement key of one TPM; every method is part of an operation, with its scratch directory."""

    def __init__(self, commands: TpmCommands) -> None:
        self._commands = commands

    def certificates(self, scratch: Path) -> list[bytes]:
        """Its certificate and those above it that the maker stored, DER, leaf first; empty when there is none."""
        leaf = self._leaf(scratch)
        if leaf is None:
            return []
        above = b"".join(self._memory(scratch, index) for index in sorted(self._indices() & set(_CHAIN)))
        return [leaf[1], *_split(above)]

    def public(self, scratch: Path) -> bytes:
        """TPM2B_PUBLIC."""
        self.handle(scratch)
        return (scratch / "ek.pub").read_bytes()

    def handle(self, scratch: Path) -> str:
        """The key as an argument of the tools: a persistent handle, or a context that is made here."""
        leaf = self._leaf(scratch)
        place = leaf[0] if leaf else _PLACES[0]
        certified = EndorsementKey.of(load_certificates(leaf[1])[0]).der if leaf else b""
        public, context = scratch / "ek.pub", scratch / "ek.ctx"
        # A persistent key may be of another template: only the one that the certificate names opens credentials.
        if certified and self._persistent(place.handle, public) and parse_public(public.read_bytes()).spki == certified:
            return hex(place.handle)
        # Real chips take seconds for this.
        self._commands.tool("createek", "-G", place.algorithm, "-c", str(context), "-u", str(public))
        self._commands.clean()
        if certified and parse_public(public.read_bytes()).spki != certified:
            raise TpmFailure(
                "the certificate in the TPM speaks for another endorsement key",
                "The TPM's endorsement seed was changed since it left its maker; it needs a new certificate.",
            )
        return str(context)

    @contextmanager
    def session(self, scratch: Path) -> Iterator[str]:
        """A session that may use the key: its policy asks for the endorsement hierarchy's secret, which is empty."""
        session = scratch / "session.ctx"
        self._commands.tool("startauthsession", "--policy-session", "-S", str(session))
        # The default template's policy (TCG EK Credential Profile): the key does nothing without it.
        self._commands.tool("policysecret", "-S", str(session), "-c", "e")
        yield f"session:{session}"
        self._commands.clean()

    def _leaf(self, scratch: Path) -> tuple[_Place, bytes] | None:
        present = self._indices()
        for place in _PLACES:
            if place.certificate in present:
                certificates = _split(self._memory(scratch, place.certificate))
                if certificates:
                    return place, certificates[0]
        return None

    def _indices(self) -> set[int]:
        listed = self._commands.printed("getcap", "handles-nv-index")
        return {int(line.strip("- \r"), 16) for line in listed.splitlines() if line.startswith("- 0x")}

    def _memory(self, scratch: Path, index: int) -> bytes:
        target = scratch / f"{index:08x}.nv"
        self._commands.tool("nvread", "-C", hex(index), hex(index), "-o", str(target))
        return target.read_bytes()

    def _persistent(self, handle: int, public: Path) -> bool:
        try:
            self._commands.tool("readpublic", "-c", hex(handle), "-o", str(public))
        except CommandFailed:
            return False
        return True


def _split(data: bytes) -> list[bytes]:
    """Certificates that stand one after the other; makers fill the memory behind them with zeros or ones."""
    certificates = []
    while len(data) > 4 and data[0] == 0x30 and data[1] == 0x82:
        # The length of the outermost SEQUENCE; what follows the last certificate is filling and is not read as one.
        size = 4 + int.from_bytes(data[2:4], "big")
        if size > len(data):
            break
        certificates.append(data[:size])
        data = data[size:]
    return certificates
