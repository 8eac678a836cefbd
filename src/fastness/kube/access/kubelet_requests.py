"""Requests of kubelets for certificates, as the API server vouches for them, and what no kubelet asks for.

Kubernetes has two signers of kubelets, one for clients and one for servers, and lays down what a request to each looks like:
subject, usages, names. `read_asked` reads one, `malformed` says what is wrong with it whoever approves it. Who may have a
certificate is decided in `enrolment.kubelet_certificates`; the signer of the embedded API refuses what is malformed even if it
was approved.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.csr import SigningRequest, read_request
from fastness.crypto.errors import BadSigningRequest
from fastness.protocol.node_certificates import CLIENT_SIGNER, LONGEST, NODE_GROUP, NODE_USER, SERVING_SIGNER, SIGNERS

Object = Mapping[str, Any]
BOOTSTRAP_USER: Final = "system:bootstrap:"
_PURPOSE: Final = {CLIENT_SIGNER: "client auth", SERVING_SIGNER: "server auth"}
_TOKEN_ID: Final = re.compile(r"[a-z0-9]{6}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class KubeletRequest:
    """A kubelet's request as the API server vouches for it; `request` is None when it cannot be read, and `problem` says why.

    `created` is when the API server took it, as it writes times.
    """

    signer: str
    username: str
    groups: frozenset[str]
    usages: tuple[str, ...]
    seconds: int | None
    request: SigningRequest | None
    problem: str = ""
    created: str = ""

    @property
    def key(self) -> str:
        """The key that a certificate is asked for; empty when the request cannot be read."""
        return str(self.request.key) if self.request else ""

    @property
    def token_id(self) -> str:
        """The bootstrap token that the request was made with; empty when it was another credential."""
        token = self.username.removeprefix(BOOTSTRAP_USER)
        return token if token != self.username and _TOKEN_ID.match(token) else ""

    @property
    def node(self) -> str:
        """The node that a certificate is asked for; empty when it is none."""
        name = self.request.subject.common_name if self.request else ""
        return name.removeprefix(NODE_USER) if name.startswith(NODE_USER) else ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names and addresses that a certificate shall speak for."""
        return (*self.request.dns, *self.request.addresses) if self.request else ()


@dataclass(frozen=True, slots=True)
class Deny:
    """It may not, for good; `alarm` says that somebody must look at the machine."""

    reason: str
    message: str
    alarm: bool = False


def read_asked(csr: Object) -> KubeletRequest | None:
    """What a CertificateSigningRequest asks for; None when it is not for one of the two signers of kubelets."""
    spec = csr.get("spec") or {}
    signer = spec.get("signerName")
    if signer not in SIGNERS:
        return None
    request, problem = None, ""
    try:
        request = read_request(base64.b64decode(spec.get("request") or "", validate=True))
    except (binascii.Error, ValueError):
        problem = "the request is not base64"
    except BadSigningRequest as error:
        problem = error.message
    return KubeletRequest(
        signer, str(spec.get("username") or ""), frozenset(spec.get("groups") or ()), tuple(spec.get("usages") or ()),
        spec.get("expirationSeconds"), request, problem, str((csr.get("metadata") or {}).get("creationTimestamp") or ""),
    )  # fmt: skip


def is_decided(csr: Object) -> bool:
    """Whether somebody approved or denied a request already, or it failed."""
    conditions = (csr.get("status") or {}).get("conditions") or ()
    return any(entry.get("type") in ("Approved", "Denied", "Failed") for entry in conditions)


def malformed(csr: KubeletRequest) -> Deny | None:
    """What no kubelet asks for, whoever approves it; None when the request itself is as it should be."""
    if csr.request is None:
        return Deny("BadRequest", csr.problem)
    # Exactly one organization: beside system:nodes a second one could say system:masters, and the signer would make an
    # administrator.
    if not csr.node or csr.request.subject.organizations != (NODE_GROUP,):
        return Deny("BadSubject", f"a kubelet asks for CN={NODE_USER}<node> and O={NODE_GROUP}, and nothing else")
    needed, allowed = {"digital signature", _PURPOSE[csr.signer]}, {"key encipherment"}
    usages = set(csr.usages)
    # The sets that the two signers of Kubernetes permit; "key encipherment" is what kubelets with RSA keys ask for.
    if len(usages) != len(csr.usages) or not needed <= usages <= needed | allowed:
        return Deny("BadUsages", f"the usages must be {' and '.join(sorted(needed))}")
    if csr.seconds is not None and csr.seconds > LONGEST.total_seconds():
        return Deny("TooLong", f"certificates of nodes live {LONGEST.total_seconds():.0f} seconds at most")
    # A client certificate with names would serve as one for a server, at hosts of the requester's choice.
    if csr.signer == CLIENT_SIGNER and csr.hosts:
        return Deny("BadNames", "a client certificate speaks for no host")
    if csr.signer == SERVING_SIGNER and not csr.hosts:
        return Deny("BadNames", "a serving certificate speaks for at least one name or address")
    return None
