"""A stand-in for `trustee-attester`, which the Clevis pin `trustee` runs: `trustee-attester --url U get-resource --path P`.

It speaks the protocol of the key broker from its text, with none of our agent in it: auth, attest, resource, a sealed answer that
another library opens. On stdout stands base64 of the resource, as the real one prints it; on stderr why there is none, and the
exit status is 1. Its TPM is one of the simulated vendor, which the variable `STANDIN_TPM` describes (`StandInTpm`), so that the
same key is there in every process.

    {"seed": hex, "serial": 7, "boot": 2, "log": false, "phases": ["enter-initrd"], "image": "tampered"}
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.client
import json
import os
import ssl
import sys
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from joserfc import jwe
from joserfc.jwk import ECKey

from fastness.sim.hardware import tampered_image
from fastness.sim.tee.images import default_image
from fastness.sim.tee.tpm import TpmMachine
from fastness.sim.tee.vendor import SimVendor

_boots = count(1)


class AttesterRefused(Exception):
    """The broker said no: its status and code."""

    def __init__(self, status: int, body: bytes) -> None:
        try:
            code = str(json.loads(body).get("code"))
        except ValueError:
            code = ""
        super().__init__(f"{status} {code}")
        self.status, self.code = status, code


@dataclass
class StandInTpm:
    """The TPM of a machine that booted: its image, and the phases that this image measured."""

    seed: str
    serial: int
    boot: int = 0
    log: bool = False
    phases: list[str] = field(default_factory=list)
    image: str = ""

    def machine(self) -> TpmMachine:
        """It, after its next boot."""
        chip = SimVendor.of(bytes.fromhex(self.seed)).chip("tpm", serial=self.serial)
        # Every session in a boot of its own: a TPM whose clock stands still is a copy of one.
        chip.boots = self.boot or next(_boots)
        booted = chip.boot(tampered_image("tpm") if self.image == "tampered" else default_image())
        for word in self.phases:
            booted.extend(11, hashlib.sha256(word.encode()).digest())
        return booted

    def public_key(self) -> str:
        """The public half of its attestation key, as the pin registers it."""
        der = base64.encodebytes(self.machine().identity_key.public_der()).decode()
        return f"-----BEGIN PUBLIC KEY-----\n{der}-----END PUBLIC KEY-----\n"

    def evidence(self, bound: bytes) -> dict[str, Any]:
        """A quote over these bytes; the real one sends no event log."""
        booted = self.machine()
        message, signature = booted.attest(bound)
        quote = {
            "message": _b64(message), "signature": _b64(signature), "pcrs": [register.hex() for register in booted.pcrs],
        }  # fmt: skip
        evidence: dict[str, Any] = {"ak_public": _b64(booted.identity_key.public_der()), "tpm_quote": quote}
        return {**evidence, "event_log": _b64(booted.event_log)} if self.log else evidence


class Conversation:
    """One run of the program: a connection, its cookie, and the key that answers are sealed to."""

    def __init__(self, url: str, trust: ssl.SSLContext) -> None:
        parts = urlsplit(url)
        self._http = http.client.HTTPSConnection(parts.hostname or "", parts.port or 443, context=trust, timeout=30)
        self._cookie = ""
        self._key = ECKey.generate_key("P-256")

    def call(self, method: str, path: str, body: Any = None) -> bytes:
        """One request; raises AttesterRefused."""
        headers = {"content-type": "application/json", **({"cookie": self._cookie} if self._cookie else {})}
        self._http.request(method, f"/kbs/v0/{path}", json.dumps(body) if body is not None else None, headers)
        answer = self._http.getresponse()
        content, cookie = answer.read(), answer.getheader("set-cookie")
        if cookie:
            self._cookie = cookie.split(";")[0]
        if answer.status != 200:
            raise AttesterRefused(answer.status, content)
        return content

    def attest(self, tpm: StandInTpm) -> None:
        """Auth and attest; raises AttesterRefused."""
        hashes = {"supported-hash-algorithms": ["sha256", "sha384", "sha512"]}
        challenge = json.loads(self.call("POST", "auth", {"version": "0.4.0", "tee": "tpm", "extra-params": hashes}))
        public = self._key.as_dict(private=False)
        pubkey = {"alg": "ECDH-ES+A256KW", **{name: public[name] for name in ("crv", "kty", "x", "y")}}
        runtime = {"additional-evidence": "", "nonce": challenge["nonce"], "tee-pubkey": pubkey}
        digest = hashlib.sha384(json.dumps(runtime, sort_keys=True, separators=(",", ":")).encode()).digest()
        self.call(
            "POST", "attest",
            {
                "runtime-data": {"nonce": challenge["nonce"], "tee-pubkey": pubkey},
                "tee-evidence": {"primary_evidence": tpm.evidence(digest[:32]), "additional_evidence": ""},
            },
        )  # fmt: skip

    def resource(self, path: str) -> bytes:
        """A resource, opened; raises AttesterRefused."""
        sealed = json.loads(self.call("GET", f"resource/{path}"))
        algorithms = ["ECDH-ES+A256KW", "A256GCM"]
        opened = jwe.decrypt_json(sealed, self._key, algorithms=algorithms).plaintext
        assert opened is not None
        return opened

    def close(self) -> None:
        """End it."""
        self._http.close()


def get_resource(url: str, path: str, tpm: StandInTpm, trust: ssl.SSLContext) -> bytes:
    """What the program prints, before base64; raises AttesterRefused."""
    conversation = Conversation(url, trust)
    try:
        conversation.attest(tpm)
        return conversation.resource(path)
    finally:
        conversation.close()


def main() -> int:
    """The command line of the real one, as the pin calls it."""
    parser = argparse.ArgumentParser("trustee-attester")
    parser.add_argument("--url", required=True)
    commands = parser.add_subparsers(required=True)
    commands.add_parser("get-resource").add_argument("--path", required=True)
    given = parser.parse_args()
    try:
        trust = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
        value = get_resource(given.url, given.path, StandInTpm(**json.loads(os.environ["STANDIN_TPM"])), trust)
    except (AttesterRefused, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(_b64(value))
    return 0


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


if __name__ == "__main__":
    sys.exit(main())
