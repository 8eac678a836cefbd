"""TrustedExecutionCluster: where the machines of a cluster find those that attest them.

Only one is honoured; another one gets `Installed` False with reason NonUnique. Every setting is optional and, once set, stays:
addresses are baked into the encrypted disks of machines.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.trusted_execution import GROUP, VERSION


def _port(description: str) -> s.Fragment:
    return s.integer(description, format="int32", minimum=1, maximum=65535)


def _address(description: str) -> s.Fragment:
    return s.string(description, minLength=1, maxLength=261)


_FIELDS = {
    "publicTrusteeAddr": _address("Address under which machines reach the key broker."),
    "trusteeKbsPort": _port("Port of the key broker."),
    "trusteeSecret": s.object_name("Secret with tls.crt, tls.key and ca.crt of the key broker."),
    "registerServerPort": _port("Port of the enrolment server."),
    "registerServerSecret": s.object_name("Secret with tls.crt and tls.key of the enrolment server."),
    "publicAttestationKeyRegisterAddr": _address("Address under which machines register their attestation key."),
    "attestationKeyRegisterPort": _port("Port of the registration of attestation keys."),
    "attestationKeyRegisterSecret": s.object_name("Secret with tls.crt, tls.key and ca.crt of that registration."),
}

TRUSTED_EXECUTION_CLUSTER = Kind(
    group=GROUP,
    version=VERSION,
    kind="TrustedExecutionCluster",
    plural="trustedexecutionclusters",
    scope=Scope.NAMESPACED,
    description="Where the machines of a confidential cluster find those that attest them.",
    schema=s.obj(
        {
            "spec": s.immutable_once_set(s.obj(_FIELDS, "The addresses; immutable once set."), *_FIELDS),
            "status": s.obj({"conditions": s.conditions("Installed and KnownTrusteeAddress.")}, "What was observed."),
        },
        required=("spec",),
    ),
    subresources=("status",),
)

KINDS = (TRUSTED_EXECUTION_CLUSTER,)
