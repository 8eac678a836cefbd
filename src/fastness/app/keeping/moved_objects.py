"""What an object is in another cluster. Pure: nothing is read or written here.

A Kubernetes gives every object a uid of its own, and ours are tied to those: owners, signed statuses of Machines, keys of disks,
who is distrusted. So whatever names a uid of before names the one of now, and nothing else about an object changes.

* A status of a Machine that was believed is signed again for its new uid, by the same role with the same serial. One that was not
  believed stays as it was: a restore vouches for nothing.
* The key of a disk opens with the uid of its Machine alone, so it is sealed anew.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from fastness.attestation.machine.signed_status import FIELD, doubt_about, sign, signature_of
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.errors import CryptoError
from fastness.crypto.secret import SecretBytes
from fastness.disks.keyring import context, secret_name
from fastness.disks.live.key_store import LABEL, TYPE
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.keys.vault import Vault
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH, AUDIT_CHECKPOINT
from fastness.kinds.fastness_dev.evidence import EVIDENCE_BLOB
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import labels_of, metadata

# Signed or named by their content: what they say of a uid of before stays true of the time before.
_AS_WRITTEN: Final = frozenset({AUDIT_BATCH.kind, AUDIT_CHECKPOINT.kind, EVIDENCE_BLOB.kind, "Secret", "ConfigMap"})
_GIVEN: Final = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "selfLink",
)  # fmt: skip
Uids = Mapping[str, str]
Signers = Mapping[tuple[str, str], Ed25519Signer]


def fresh(obj: JsonObject, uids: Uids) -> JsonObject:
    """The object as it is created: without what the API server gives, and with the uids of now."""
    meta = {name: value for name, value in metadata(obj).items() if name not in _GIVEN}
    if owners := meta.get("ownerReferences"):
        meta["ownerReferences"] = [{**owner, "uid": uids[owner["uid"]]} for owner in owners if owner["uid"] in uids]
    body: JsonObject = {**obj, "metadata": meta}
    return body if obj["kind"] in _AS_WRITTEN else renamed(body, uids)


def renamed(value: Any, uids: Uids) -> Any:
    """The same with every text that is a uid of before replaced by the uid of now."""
    if isinstance(value, str):
        return uids.get(value, value)
    if isinstance(value, list):
        return [renamed(entry, uids) for entry in value]
    if isinstance(value, dict):
        return {name: renamed(entry, uids) for name, entry in value.items()}
    return value


def owners_known(obj: JsonObject, uids: Uids) -> bool:
    """Whether all owners are there already."""
    return all(owner["uid"] in uids for owner in metadata(obj).get("ownerReferences") or ())


def settled_status(status: JsonObject, before: int, now: int) -> JsonObject:
    """A status that spoke of the present generation speaks of it again; one that lagged behind lags behind."""

    def observed(entry: JsonObject) -> JsonObject:
        if "observedGeneration" not in entry:
            return entry
        return {**entry, "observedGeneration": now if entry["observedGeneration"] == before else 0}

    conditions = status.get("conditions")
    if isinstance(conditions, list):
        status = {
            **status,
            "conditions": [observed(entry) if isinstance(entry, dict) else entry for entry in conditions],
        }
    return observed(status)


def signers_in(secrets: Mapping[str, JsonObject]) -> Signers:
    """The keys with which roles sign, out of the Secrets `<role>-record-key`, by role and id of the key."""
    signers: dict[tuple[str, str], Ed25519Signer] = {}
    for name, secret in secrets.items():
        role, mark, _ = name.partition("-record-key")
        if not mark:
            continue
        try:
            ring = json.decode(base64.b64decode((secret.get("data") or {}).get("keys", ""), validate=True))
            made = [Ed25519Signer(SecretBytes(base64.b64decode(key["key"]))) for key in ring["keys"]]
        except (JsonError, binascii.Error, KeyError, TypeError, ValueError, CryptoError):
            continue  # a role whose keys cannot be read signs nothing; its Machines are to be vouched for
        signers |= {(role, signer.verifier.id): signer for signer in made}
    return signers


def resigned_status(machine: JsonObject, status: JsonObject, uid: str, signers: Signers) -> JsonObject:
    """The status of a Machine for its new uid, signed if the one of before was believed."""
    signature = signature_of(machine)
    if signature is None:
        return status
    signer = signers.get((signature.by, signature.key))
    if signer is None or doubt_about(machine, signature, signer.verifier) is not None:
        return status
    return {**status, FIELD: sign(uid, status, signature.by, signature.serial, signer).to_json()}


def is_disk_keys(secret: JsonObject) -> bool:
    """Whether a Secret holds the keys of a Machine's volumes."""
    return secret.get("kind") == "Secret" and secret.get("type") == TYPE


def disk_keys_of(secret: JsonObject, uids: Uids, vault: Vault) -> JsonObject | None:
    """The keys of a Machine's volumes under its new uid; None when its Machine is gone. Raises BrokenSeal, UnknownSealKey."""
    before = labels_of(secret).get(LABEL, "")
    now = uids.get(before)
    if now is None:
        return None
    data = {}
    for entry, text in (secret.get("data") or {}).items():
        volume, _, key_id = entry.rpartition(".")
        key = vault.open(base64.b64decode(text), context(before, volume, key_id))
        data[entry] = base64.b64encode(vault.seal(key, context(now, volume, key_id))).decode()
    moved = fresh(secret, uids)
    meta = {**moved["metadata"], "name": secret_name(now), "labels": {**labels_of(secret), LABEL: now}}
    return {**moved, "metadata": meta, "data": data}
