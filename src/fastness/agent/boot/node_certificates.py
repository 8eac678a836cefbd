"""The certificates of the node: the agent makes their keys, names them in its proof, and puts them where the kubelet looks.

    keys = await certificates.new_keys()        # what is due: keys in memory, and their names for the session
    await broker.attest(keys=keys)              # the proof that was due anyway names them
    await certificates.renew()                  # requests with the certificate of now; files replaced when the answers are there

A kubelet that rotates by itself makes a key that nobody proved anything about, so in attested pools it runs with
`rotateCertificates: false` and `serverTLSBootstrap: false` and reads what it finds: `kubelet-client-current.pem` for the API
(client-go looks every five minutes), `kubelet.crt` and `kubelet.key` for its own port (every minute).

* A key is never on a disk before it has its certificate, and its file is for its owner alone, replaced whole.
* A certificate is renewed from half of its life on: at least one more proof fits in before it ends.
* What is denied, or not answered in time, is said; the next proof names other keys. The file of before stays until then.
* Before the machine joined there is nothing to renew: `agent join` gets the first key its certificate.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from fastness.agent.boot.join import write_secret
from fastness.agent.errors import AgentError
from fastness.crypto.csr import make_request
from fastness.crypto.digests import sha256
from fastness.crypto.errors import CryptoError
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate, Subject
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.resources import NODES, SIGNING_REQUESTS
from fastness.kinds.objects import condition
from fastness.kube.errors import AlreadyExists, ApiError, ConfigError
from fastness.kube.port import Cluster
from fastness.observe.logs import logger
from fastness.protocol.node_certificates import (
    CLIENT_SIGNER,
    LONGEST,
    NODE_GROUP,
    NODE_USER,
    SERVING_SIGNER,
    addresses_of,
    is_own_host,
)
from fastness.protocol.node_keys import CLIENT, SERVING, NamedKeys
from fastness.runtime.clock import Clock, Entropy

CLIENT_FILE: Final = "kubelet-client-current.pem"
SERVING_FILE, SERVING_KEY_FILE = "kubelet.crt", "kubelet.key"
# The approver answers in moments or not at all; the next proof names other keys.
DECIDED_WITHIN: Final = 60.0
LOOK_SECONDS: Final = 0.5
# A proof is an entry of the record, so the first ones come soon and the others ever more seldom; a look at a file costs nothing.
FIRST_LOOK: Final = 5.0
SHORTEST_WAIT: Final = 30.0
JOINED_LOOK: Final = 1.0
MAX_FILE: Final = 64 * 1024
# Long enough for the first proof after a boot to renew it: a certificate that ends before that leaves nothing to ask with.
COUNTS_STILL: Final = timedelta(minutes=10)
_SIGNERS: Final = {CLIENT: (CLIENT_SIGNER, "client auth"), SERVING: (SERVING_SIGNER, "server auth")}
_log = logger("nodecerts")
Api = Callable[[], AbstractAsyncContextManager[Cluster]]


class CertificateRefused(AgentError):
    """A certificate of the node was denied, or nobody decided about it."""

    code = "certificate-refused"
    hint = "kubectl describe csr says why; see the events of the request, and the Machine's conditions."


@dataclass(frozen=True, slots=True)
class _NewKey:
    """A certificate that is due: for which purpose, with which new key, for which names."""

    purpose: str
    key: PrivateKey
    hosts: tuple[str, ...] = ()


class NodeCertificates:
    """The certificates of one node, in the directory where its kubelet looks."""

    def __init__(self, directory: Path, api: Api, clock: Clock, entropy: Entropy) -> None:
        """Renew what lies in `directory`; `api` opens the API with the credential that lies there now."""
        self._directory = directory
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._new_keys: list[_NewKey] = []
        self._node = ""
        self._looks = 0

    async def new_keys(self) -> NamedKeys:
        """Make the keys of what is due; their names, for the session that is about to be opened."""
        self._new_keys = []
        client = self._read(CLIENT_FILE)
        if client is None:
            return NamedKeys()  # not joined yet
        # From its own certificate, never from a setting of the host: the name is what the cluster issued.
        self._node = client.subject.common_name.removeprefix(NODE_USER)
        if self._due(client):
            self._new_keys.append(_NewKey(CLIENT, PrivateKey.generate(self._entropy)))
        hosts = await self._hosts() if self._serving_due() else ()
        if hosts:
            self._new_keys.append(_NewKey(SERVING, PrivateKey.generate(self._entropy), hosts))
        return NamedKeys(**{new.purpose: str(sha256(new.key.public_der())) for new in self._new_keys})

    async def renew(self) -> None:
        """Ask for what was named, and put it where the kubelet looks. What fails is said, and tried again with other keys."""
        new_keys, self._new_keys = self._new_keys, []
        for new in new_keys:
            try:
                async with self._api() as cluster:
                    self._write(new, await self._certificate(cluster, new))
            except (ApiError, ConfigError, AgentError, CryptoError, OSError) as error:
                _log.warning("agent.certificate", node=self._node, purpose=new.purpose, error=error)
            else:
                _log.info("agent.certificate-renewed", node=self._node, purpose=new.purpose)

    def seconds(self, regular: float) -> float:
        """How long the next proof may wait: until what is there is due, and less while something is not there yet."""
        client, now = self._read(CLIENT_FILE), self._clock.now()
        if client is None:
            return regular  # `wait` ends with that
        if self._serving_due():
            wait = FIRST_LOOK * math.pow(2, min(self._looks, 8))
            self._looks += 1
            return min(regular, wait)
        self._looks = 0
        return min(regular, max(SHORTEST_WAIT, (_half_life(client) - now).total_seconds()))

    async def wait(self, seconds: float) -> None:
        """Wait so long, or until the machine has joined: its kubelet then serves with a key that nobody believes."""
        if self._read(CLIENT_FILE) is not None:
            await self._clock.sleep(seconds)
        end = self._clock.monotonic() + seconds
        while self._read(CLIENT_FILE) is None and (left := end - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, JOINED_LOOK))

    def _read(self, name: str) -> Certificate | None:
        return _certificate_at(self._directory / name)

    def _due(self, certificate: Certificate) -> bool:
        return self._clock.now() >= _half_life(certificate)

    def _serving_due(self) -> bool:
        """Whether the kubelet serves with what it made itself, or with what ends."""
        serving = self._read(SERVING_FILE)
        # A kubelet without one makes a self-signed certificate in the same file: by its organization the two are told apart.
        return serving is None or serving.subject.organizations != (NODE_GROUP,) or self._due(serving)

    async def _hosts(self) -> tuple[str, ...]:
        """The names and addresses that the Node shows and that are a machine's own; none without a Node."""
        try:
            async with self._api() as cluster:
                addresses = addresses_of(await cluster.get(NODES, self._node))
        except (ApiError, ConfigError, OSError):
            return ()
        return (
            tuple(sorted(host for host in {*addresses, self._node} if is_own_host(host, self._node)))
            if addresses
            else ()
        )

    async def _certificate(self, cluster: Cluster, new: _NewKey) -> Certificate:
        """The answer to a request; raises CertificateRefused, ApiError, CryptoError."""
        request = self._request(new)
        name = str(request["metadata"]["name"])
        with suppress(AlreadyExists):  # the answer to an earlier try was lost; the name follows from the key
            await cluster.create(SIGNING_REQUESTS, request)
        end = self._clock.monotonic() + DECIDED_WITHIN
        while self._clock.monotonic() < end:
            stored = await cluster.get(SIGNING_REQUESTS, name)
            if issued := (stored.get("status") or {}).get("certificate"):
                return _issued(issued, new.key)
            for kind in ("Denied", "Failed"):
                if (decided := condition(stored, kind)) is not None:
                    raise CertificateRefused(f"{name} is {kind.lower()}: {decided.get('message', '')}")
            await self._clock.sleep(LOOK_SECONDS)
        raise CertificateRefused(f"nobody decided about {name} in {DECIDED_WITHIN:.0f} seconds")

    def _request(self, new: _NewKey) -> JsonObject:
        signer, usage = _SIGNERS[new.purpose]
        pem = make_request(new.key, Subject(f"{NODE_USER}{self._node}", (NODE_GROUP,)), new.hosts)
        digest = sha256(new.key.public_der()).hex
        return {
            "apiVersion": SIGNING_REQUESTS.api_version, "kind": SIGNING_REQUESTS.kind,
            "metadata": {"name": f"fastness-{self._node}-{new.purpose}-{digest[:12]}"},
            "spec": {
                "request": base64.b64encode(pem).decode(), "signerName": signer, "usages": ["digital signature", usage],
                # Said here, so that the hour holds whatever the signer's own default is.
                "expirationSeconds": int(LONGEST.total_seconds()),
            },
        }  # fmt: skip

    def _write(self, new: _NewKey, certificate: Certificate) -> None:
        key = new.key.to_pem()
        if new.purpose == CLIENT:
            write_secret(self._directory / CLIENT_FILE, SecretBytes(certificate.pem + key.reveal()))
            return
        # Two files cannot be replaced at once; the kubelet keeps the pair of before while key and certificate do not belong
        # together.
        write_secret(self._directory / SERVING_KEY_FILE, key)
        write_secret(self._directory / SERVING_FILE, SecretBytes(certificate.pem))


def joined_node(path: Path, now: datetime) -> str:
    """The name of the node whose certificate lies at a path and counts for a while still; empty where there is none."""
    certificate = _certificate_at(path)
    if certificate is None or certificate.not_after - now <= COUNTS_STILL:
        return ""
    return certificate.subject.common_name.removeprefix(NODE_USER)


def _certificate_at(path: Path) -> Certificate | None:
    try:
        with path.open("rb") as file:
            return Certificate.from_pem(file.read(MAX_FILE))
    except (OSError, CryptoError):
        return None


def _half_life(certificate: Certificate) -> datetime:
    lifetime: timedelta = certificate.not_after - certificate.not_before
    return certificate.not_before + lifetime / 2


def _issued(text: str, key: PrivateKey) -> Certificate:
    try:
        certificate = Certificate.from_pem(base64.b64decode(text))
    except ValueError as error:
        raise CertificateRefused("the certificate that was issued cannot be read") from error
    # Written beside our key it would leave the node without a pair that works, and the old one ends within the hour.
    if not certificate.belongs_to(key):
        raise CertificateRefused("the certificate that was issued is for another key")
    return certificate
