"""The names that follow from a machine's key: its thumbprint, its objects, its node.

    machine-<id>   Machine
    ak-<id>        AttestationKey
    <pool>-<id>    the node that this machine, and no other, may become

The id is the start of the key's thumbprint, 20 hex digits, with a `g` before them for guest keys. So all names follow from the
key and its kind, and no guest key has the name of an AK. That makes enrolment repeatable without a lookup, and node names unique
without a lock: whoever wants the same node name needs the same Machine name, which the API server gives once. Eighty bits cannot
be searched for a second key. The agent computes the same names from its own key.
"""

from __future__ import annotations

import re
from typing import Final

from fastness.crypto.digests import parse_digest
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.evidence.tpm.public import parse_public
from fastness.kinds.trusted_execution.subject import KeyKind

NAME_HEX: Final = 20
# Forty-one, a dash and up to 21 of the id are 63, the longest label of a host name (RFC 1123 §2.1, RFC 1035 §2.3.4).
MAX_POOL_IN_NODE_NAME: Final = 41
_LABEL_HEX: Final = 40
# No hex digit, so that no id of a guest key is one of an AK.
_GUEST_MARK: Final = "g"
_NODE_OF: Final = re.compile(rf"-({_GUEST_MARK}?[0-9a-f]{{{NAME_HEX}}})\Z", re.ASCII)


def identity_thumbprint(tee: str, public: bytes) -> str:
    """Thumbprint of a machine's key as it gives it: TPM2B_PUBLIC of a TPM, otherwise DER; raises EvidenceError, CryptoError."""
    return str(AttestationKey(parse_public(public).spki if tee == "tpm" else public).thumbprint)


def machine_name(kind: KeyKind, thumbprint: str) -> str:
    """Name of the Machine of a key; raises BadDigest."""
    return f"machine-{_id(kind, thumbprint)}"


def key_name(thumbprint: str) -> str:
    """Name of the AttestationKey of an AK; raises BadDigest."""
    return f"ak-{_id(KeyKind.AK, thumbprint)}"


def node_name(pool: str, kind: KeyKind, thumbprint: str) -> str:
    """The node that a machine may become; a host name of at most 63 characters. Raises BadDigest."""
    # The cut pool may repeat, the id cannot.
    return f"{pool.replace('.', '-')[:MAX_POOL_IN_NODE_NAME].rstrip('-')}-{_id(kind, thumbprint)}"


def machine_of_node(node: str) -> str:
    """Name of the Machine that a node may be, as both names come from the machine's key; empty for a name that no machine has."""
    match = _NODE_OF.search(node)
    return f"machine-{match[1]}" if match else ""


def endorsement_label(endorsement: str) -> str:
    """The label that finds all Machines of one endorsement key; raises BadDigest."""
    return parse_digest(endorsement).hex[:_LABEL_HEX]


def _id(kind: KeyKind, thumbprint: str) -> str:
    mark = _GUEST_MARK if kind is KeyKind.GUEST else ""
    return f"{mark}{parse_digest(thumbprint).hex[:NAME_HEX]}"
