"""How a virtual machine of a pool without attestation joins: what a kubelet does with the kubeconfig of its configuration.

    await bootstrap(machine, node, document, fleet, pause)      # the node's certificate lies where a kubelet has it

With the token it asks the API server for its first certificate, over TLS and with no right but the token's, and waits until it is
approved and signed. A refusal is final, as it is for a kubelet that nobody gives another token.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple

import httpx

from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.host.states import File
from fastness.crypto.csr import make_request
from fastness.crypto.keys import PrivateKey
from fastness.crypto.x509 import Subject
from fastness.formats import data_url, yaml
from fastness.formats.errors import DataUrlError, YamlError
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.serving import KUBECONFIG_FILE
from fastness.protocol.node_certificates import CLIENT_SIGNER, NODE_GROUP, NODE_USER
from fastness.sim.first_boot import TIMEOUT, BootFailure, Pause, believing
from fastness.sim.platform import Fleet

CERTIFICATE: Final = "/var/lib/kubelet/pki/kubelet-client-current.pem"
_REQUESTS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class Credential(NamedTuple):
    """What a bootstrap kubeconfig says."""

    server: str
    authority: bytes
    token: str


async def bootstrap(machine: DirectoryMachine, node: str, document: JsonObject, fleet: Fleet, pause: Pause) -> None:
    """Get the first certificate of a node, if its configuration brings a token; raises BootFailure."""
    credential = _credential(document)
    # A boot that was cut short has left it: like a kubelet, ask no second time, because the name is given to the first key.
    if credential is None or isinstance(machine.host.root.look(CERTIFICATE), File):
        return
    key = PrivateKey.generate(fleet.entropy)
    headers = {"authorization": f"Bearer {credential.token}"}
    trust = believing((credential.authority,))
    async with httpx.AsyncClient(
        # The address in a configuration is a name that the network of machines leads to the API, wherever that listens today.
        base_url=fleet.api or credential.server,
        headers=headers,
        verify=trust,
        trust_env=False,
        timeout=TIMEOUT,
    ) as http:
        certificate = await _signed(http, _request(key, node), pause)
    pem = key.to_pem().reveal() + certificate
    machine.host.root.put(CERTIFICATE, File(pem, 0o600))


def _credential(document: JsonObject) -> Credential | None:
    """What the kubeconfig of a configuration says, None when there is none with a token; raises BootFailure."""
    files = (document.get("storage") or {}).get("files") or ()
    entry = next((file for file in files if file.get("path") == KUBECONFIG_FILE), None)
    if entry is None:
        return None
    try:
        kubeconfig: Any = yaml.load_documents(data_url.contents(entry["contents"]))[0].value
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"], validate=True)
        return Credential(cluster["server"], authority, user["token"]) if "token" in user else None
    except (DataUrlError, YamlError, KeyError, TypeError, IndexError, binascii.Error) as error:
        raise BootFailure(f"{KUBECONFIG_FILE} cannot be read: {error}") from error


def _request(key: PrivateKey, node: str) -> JsonObject:
    pem = make_request(key, Subject(f"{NODE_USER}{node}", (NODE_GROUP,)))
    spec = {
        "request": base64.b64encode(pem).decode(), "signerName": CLIENT_SIGNER,
        "usages": ["digital signature", "client auth"],
    }  # fmt: skip
    return {
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "node-csr-"}, "spec": spec,
    }  # fmt: skip


async def _signed(http: httpx.AsyncClient, request: JsonObject, pause: Pause) -> bytes:
    """The certificate for a request, when it is signed; raises BootFailure."""
    path, attempt = "", 0
    while True:
        try:
            answer = await (http.get(path) if path else http.post(_REQUESTS, json=request))
            if 400 <= answer.status_code < 500:
                raise BootFailure(f"the API server answered the bootstrap token with {answer.status_code}")
            if answer.is_success:
                stored = answer.json()
                path = f"{_REQUESTS}/{stored['metadata']['name']}"
                certificate = _certificate(stored)
                if certificate:
                    return certificate
        except httpx.TransportError:
            pass  # the network comes and goes; asked again below
        await pause(attempt)
        attempt += 1


def _certificate(stored: JsonObject) -> bytes:
    """The certificate in a request, empty until there is one; raises BootFailure when there will be none."""
    status = stored.get("status") or {}
    denial = next((entry for entry in status.get("conditions") or () if entry.get("type") == "Denied"), None)
    if denial is not None:
        raise BootFailure(f"the node may not join: {denial.get('message')}")
    return base64.b64decode(status.get("certificate") or "")
