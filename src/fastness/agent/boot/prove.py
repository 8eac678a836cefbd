"""The machine's half of the key broker: answer a challenge with evidence, then ask for what is ours.

    async with BrokerClient(url, trust, attester, entropy) as broker:
        await broker.attest()                              # a session, bound to a key of its own
        await broker.attest(keys=NamedKeys(client=…))      # the same, which names keys that the node asks certificates for
        await broker.attest(unlock=UnlockClaim(…))         # one that opens this machine's disks and nothing else
        secret = await broker.resource("machine/…/key")    # opened with that key
        proof = broker.proof(…)                            # shows other doors that the token is ours

The key of the session is drawn for this conversation and never leaves this object; the evidence covers it together with the
broker's nonce. A machine without a TPM also signs both with the guest key that it enrolled with, and a trust domain with the key
of its boot.

* A refusal is final and carries the broker's code; 503 means come back.
* An expired session is a 401: attest again.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self, TypeVar

import httpx

from fastness.agent.boot.attester import Attester
from fastness.agent.errors import AgentError
from fastness.crypto import jwe
from fastness.crypto.errors import CryptoError
from fastness.crypto.jwk import decoded, public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import key_kind
from fastness.kube.client.pool import HttpsClient, TooLong, unreachable
from fastness.protocol import kbs
from fastness.protocol.disk_report import disks_member
from fastness.protocol.door import DoorRole
from fastness.protocol.dpop import Demand, make_proof
from fastness.protocol.enrolment import TPM, jwk_of
from fastness.protocol.guest_key import boot_member, boot_message, identity_member, identity_message
from fastness.protocol.machine_names import node_name
from fastness.protocol.node_keys import NamedKeys
from fastness.protocol.unlock import unlock_member, unlock_message
from fastness.runtime.clock import Entropy
from fastness.runtime.retries import retry_after

PREFIX: Final = "/kbs/v0"
MAX_ANSWER: Final = 4 * 1024 * 1024
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_ANSWER, max_depth=16)


class DoorRefused(AgentError):
    """A door said no; `reason` is its code, `status` the answer, `retry_after` when to come back if that may help."""

    code = "door-refused"
    hint = "On the control plane: fastness attest explain with the name of this machine."

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.reason, self.retry_after = status, reason, retry_after

    @property
    def passing(self) -> bool:
        """Whether the same question may be answered differently later."""
        return self.status >= 500


class BrokerRefused(DoorRefused):
    """The broker said no."""

    code = "broker-refused"


UNREACHABLE: Final = "unreachable"
R = TypeVar("R", bound=DoorRefused)


@dataclass(frozen=True, slots=True)
class UnlockClaim:
    """Whose disk keys a session asks for, and the key of this boot that it asks with.

    The guest key of a machine whose disk is locked is on that disk: only a first boot can show it beside.
    """

    machine: str
    key: PrivateKey
    with_identity: bool = False


class BrokerClient:
    """One machine's conversation with a broker."""

    def __init__(
        self, url: str, trust: ssl.SSLContext, attester: Attester, entropy: Entropy, seconds: float = 30.0
    ) -> None:
        # By the role in its certificate: a gate that was taken over listens nowhere as the broker.
        self._http = HttpsClient(url, trust, seconds, DoorRole.BROKER)
        self._attester = attester
        self._entropy = entropy
        # Of this conversation alone: a token that leaks is of no use without it, and it is never written anywhere.
        self.key = PrivateKey.generate(entropy)
        self.token = SecretText("")
        self._session = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections. The token stays: who asks again opens new ones."""
        await self._http.close()

    def go_to(self, url: str) -> None:
        """Speak to another replica from now on; the session goes along."""
        self._http.origin = url.rstrip("/")

    @property
    def recipient(self) -> JsonObject:
        """The public key of this session, which answers are sealed to."""
        return dict(public_jwk(self.key))

    async def attest(self, keys: NamedKeys | None = None, unlock: UnlockClaim | None = None) -> SecretText:
        """Ask for a challenge and answer it, naming keys of the node; the token; raises BrokerRefused, DriverError.

        With `unlock` the session opens the disks of that machine and nothing else.
        """
        opened = await self._call("POST", f"{PREFIX}/auth", kbs.request_message(self._attester.tee))
        nonce = _text(opened, "nonce")
        members = await self._about_disks(nonce, unlock) | (keys or NamedKeys()).member()
        answer = await self._answer(nonce, members, show_identity=unlock is None or unlock.with_identity)
        proved = await self._call("POST", f"{PREFIX}/attest", kbs.attestation_message(answer))
        self.token = SecretText(_text(proved, "token"))
        return self.token

    @property
    def issued(self) -> datetime | None:
        """When the token was issued, by the clock of the doors; None without a token that says so."""
        try:
            return datetime.fromtimestamp(int(self._claims()["iat"]), UTC)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    @property
    def expires(self) -> datetime | None:
        """When the token ends, by the clock of the doors; None without a token that says so."""
        try:
            return datetime.fromtimestamp(int(self._claims()["exp"]), UTC)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    @property
    def reattest(self) -> timedelta | None:
        """How often the cluster wants this machine to attest again; None without a token that says so."""
        try:
            return timedelta(seconds=int(self._claims()["fastness"]["reattest"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    @property
    def machine(self) -> str:
        """The uid of this machine in the cluster; empty without a token that says so."""
        ours = self._claims().get("fastness")
        return str(ours.get("machine") or "") if isinstance(ours, dict) else ""

    @property
    def pool(self) -> str:
        """The pool of this machine; empty without a token that says so."""
        ours = self._claims().get("fastness")
        return str(ours.get("pool") or "") if isinstance(ours, dict) else ""

    @property
    def node_name(self) -> str:
        """The node that this machine may become; empty without a token that says who it is."""
        claims = self._claims()
        ours = claims.get("fastness")
        try:
            if not isinstance(ours, dict):
                return ""
            return node_name(str(ours["pool"]), key_kind(str(ours["tee"])), str(claims["sub"]))
        except (KeyError, CryptoError):
            return ""

    def _claims(self) -> JsonObject:
        """What the token says. It came from the broker itself, over TLS, so its signature is not looked at."""
        try:
            claims = json.decode(decoded(self.token.reveal().split(".")[1]), _LIMITS)
        except (IndexError, CryptoError, JsonError):
            return {}
        return claims if isinstance(claims, dict) else {}

    def proof(self, method: str, url: str, nonce: str, jti: str, now: datetime) -> str:
        """The proof for one request to another door that whoever sends the token holds the key of this session."""
        return make_proof(self.key, self.recipient, Demand(method, url, self.token.reveal()), nonce, now, jti)

    async def resource(self, path: str, query: str = "") -> SecretBytes:
        """A resource that is ours; raises BrokerRefused."""
        sealed = await self._call("GET", f"{PREFIX}/resource/{path}{'?' if query else ''}{query}")
        try:
            return jwe.opened(sealed, self.key)
        except CryptoError as error:
            raise BrokerRefused(502, error.code, f"the broker's answer does not open: {error}") from error

    async def _about_disks(self, nonce: str, unlock: UnlockClaim | None) -> JsonObject:
        """What a session says of disks: that it asks for their keys, or which ones this boot opened."""
        if unlock is None:
            return disks_member(await self._attester.disks())
        signature = unlock.key.sign(unlock_message(nonce, self.recipient, unlock.machine))
        return unlock_member(unlock.machine, jwk_of(unlock.key.public_der()[-64:]), signature)

    async def _answer(self, nonce: str, members: JsonObject, *, show_identity: bool) -> kbs.KbsAttestation:
        recipient = self.recipient
        # A quote of a TPM is signed by the enrolled key itself; a report of the processor says nothing of who enrolled.
        if self._attester.tee != TPM and show_identity:
            public = await self._attester.identity_public()
            signature = await self._attester.sign(identity_message(nonce, recipient))
            # A P-256 SubjectPublicKeyInfo ends with the uncompressed point (RFC 5480 §2.2): its last 64 bytes are x and y.
            members |= identity_member(jwk_of(public[-64:]), signature)
        boot = await self._attester.sign_as_boot(boot_message(nonce, recipient))
        if boot is not None:
            members |= boot_member(jwk_of(boot.public[-64:]), boot.signature)
        # The hardware signs this text with the runtime data: nobody on the way, and no thief of the token, names another key.
        additional = json.canonical(members).decode() if members else ""
        bound = kbs.binding(self._attester.tee, kbs.runtime_data(nonce, recipient, additional))
        # After everything that it is bound to exists: nonce, key of the session and named keys are in its 32 or 64 bytes.
        evidence = await self._attester.evidence(bound)
        init_data = await self._attester.init_data()
        sent = (kbs.INIT_DATA_FORMAT, init_data) if init_data else None
        return kbs.KbsAttestation(nonce, recipient, evidence, additional, sent)

    async def _call(self, method: str, path: str, body: bytes = b"") -> bytes:
        headers = {"content-type": "application/json"} if body else {}
        if self._session:
            headers["cookie"] = self._session
        try:
            answer = await self._http.ask(method, path, headers, body, lambda _: MAX_ANSWER)
        except TooLong as error:
            raise BrokerRefused(
                502, "answer-too-long", f"the broker answered with more than {MAX_ANSWER} bytes"
            ) from error
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise BrokerRefused(503, UNREACHABLE, f"the broker {unreachable(error)}") from error
        # The session belongs to the cluster, not to a host: every replica knows it.
        self._session = answer.headers.get("set-cookie", self._session).partition(";")[0]
        if answer.status == 200:
            return answer.body
        later = answer.headers.get("retry-after", "")
        raise refusal(BrokerRefused, "broker", answer.status, answer.body, later)


def refusal(kind: type[R], door: str, status: int, content: bytes, later: str | None) -> R:
    """What a door said when it did not give what it was asked for."""
    try:
        problem = json.decode(content, _LIMITS)
    except JsonError:
        problem = {}
    problem = problem if isinstance(problem, dict) else {}
    reason, detail = str(problem.get("code", status)), str(problem.get("detail", ""))
    return kind(status, reason, f"the {door} refused ({reason}): {detail}", retry_after(later) or 0.0)


def _text(content: bytes, member: str) -> str:
    try:
        value = json.decode(content, _LIMITS)
        text = value[member]
    except (JsonError, KeyError, TypeError) as error:
        raise BrokerRefused(502, "bad-answer", f"the broker's answer has no {member}") from error
    if not isinstance(text, str) or not text:
        raise BrokerRefused(502, "bad-answer", f"the broker's answer has no {member}")
    return text
