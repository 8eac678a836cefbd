"""The word that confirms one change which lowers protection, for any kind.

    word = confirmation(old, new)                     # what `fastness.dev/confirm-lower` must say for this very change
    answer = confirmed(request, ("mode goes …",))     # a refusal that prints the word, or Allowed once it is there

Lowering protection is allowed, but has to be said twice. The word is a digest over the uid, the generation, the spec before and
the spec after (for a deletion: the word `deleted`), so it is good for that one change: the next one has another generation and
another spec, and an object that was made anew has another uid. Where it is written does not matter: an update brings it along
(apply, patch, replace, edit); a deletion, which has no body, needs it on the stored object.

A rule of another kind says in phrases what its change lowers and asks `confirmed`. Controllers take used words off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.fastness_dev.cluster import CONFIRM_LOWER
from fastness.kinds.objects import annotations_of, metadata
from fastness.kube.admission import AdmissionRequest, Allowed, Denied, DeniedCause, Operation, forbidden

DELETED: Final = "deleted"

Object = Mapping[str, Any]


def confirmation(old: Object, new: Object | None) -> str:
    """What confirms the change from `old` to `new`, and no other; `new` is None for a deletion. Empty without a uid."""
    meta = metadata(old)
    if not meta.get("uid"):
        return ""
    after = DELETED if new is None else new.get("spec") or {}
    return sha256(json.canonical([meta["uid"], meta.get("generation") or 0, old.get("spec") or {}, after])).hex


def confirmation_of(request: AdmissionRequest) -> str:
    """What confirms the change of a request."""
    return confirmation(request.old or {}, None if request.operation is Operation.DELETE else request.new)


def confirmed(request: AdmissionRequest, lowered: Sequence[str]) -> Denied | Allowed | None:
    """Refuse a change that lowers something (one phrase each) without its word; with it, allow and say what was lowered."""
    if not lowered:
        return None
    word = confirmation_of(request)
    carrier = request.old or {} if request.operation is Operation.DELETE else request.new
    if word and annotations_of(carrier).get(CONFIRM_LOWER) == word:
        return Allowed(tuple(f"protection lowered: {phrase}" for phrase in lowered))
    cause = DeniedCause(f"metadata.annotations[{CONFIRM_LOWER}]", "FieldValueRequired", f"Required value: {word}")
    why = f"{'; '.join(lowered)}: confirm this change, and no other, with the annotation {CONFIRM_LOWER}={word}"
    return forbidden(request, why, cause)
