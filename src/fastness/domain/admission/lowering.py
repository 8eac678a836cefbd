"""What makes a ConfidentialCluster weaker, and the word that confirms one such change.

    lowered = list(weakenings(old, new))          # one phrase each; empty: nothing is weaker
    word = confirmation(old, new)                 # what `fastness.dev/confirm-lower` must say for this very change

Lowering protection is allowed, but has to be said twice. The confirmation is a digest over the uid, the generation, the spec
before and the spec after, so it is good for that one change: the next one has another generation and another spec.

Lower are: a lower mode, a weaker trust model of a pool (a pool that is not listed is confidential), another extra root, another
type of evidence, a lower minimum TCB, trust on first use, automatic approval, longer intervals and lifetimes, any change of
approvers, and deletion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.domain.attestation.anchors import DEFAULT_EVIDENCE
from fastness.domain.machineconfig.errors import BadPolicy
from fastness.domain.machineconfig.waves import duration
from fastness.domain.trustmodel import listed_pools, mode_of, trust_model
from fastness.formats import json
from fastness.model.objects import metadata

DELETED: Final = "deleted"
_SPANS: Final[Mapping[tuple[str, ...], str]] = {
    ("reattestInterval",): "15m", ("tokenLifetime",): "10m", ("challengeLifetime",): "60s", ("collateralStaleness",): "24h",
    ("missed", "cordonAfter"): "15m", ("missed", "drainAfter"): "",
}  # fmt: skip
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ][0-9:.]+Z?)?\Z", re.ASCII)

Object = Mapping[str, Any]


def confirmation(old: Object, new: Object | None) -> str:
    """What confirms the change from `old` to `new`, and no other; `new` is None for a deletion. Empty without a uid."""
    meta = metadata(old)
    if not meta.get("uid"):
        return ""
    after = DELETED if new is None else new.get("spec") or {}
    return sha256(json.canonical([meta["uid"], meta.get("generation") or 0, old.get("spec") or {}, after])).hex


def weakenings(old: Object, new: Object) -> Iterator[str]:
    """What the change from `old` to `new` lowers, one phrase each."""
    if mode_of(new).strength < mode_of(old).strength:
        yield f"mode goes from {mode_of(old)} to {mode_of(new)}"
    for pool in sorted(listed_pools(old).keys() | listed_pools(new).keys()):
        before, after = trust_model(old, pool), trust_model(new, pool)
        if after.strength < before.strength:
            yield f"pool {pool} goes from {before} to {after}"
    for root in sorted(_roots(new) - _roots(old)):
        yield f"root {root[0]} is trusted for {root[1] or 'everything'}"
    yield from _more_evidence(old, new)
    if _at(new, "spec", "attestation", "tdx", "allowSeptVe") and not _at(
        old, "spec", "attestation", "tdx", "allowSeptVe"
    ):
        yield "trust domains count whose pages the host can make fault"
    yield from _lower_tcb(_at(old, "spec", "attestation", "minimumTcb"), _at(new, "spec", "attestation", "minimumTcb"))
    yield from _other_approvers(_approvers(old), _approvers(new))
    if _at(new, "spec", "join", "trustOnFirstUse") and not _at(old, "spec", "join", "trustOnFirstUse"):
        yield "machines are trusted on first use"
    if _at(old, "spec", "join", "approval") == "Manual" and _at(new, "spec", "join", "approval") != "Manual":
        yield "machines are approved automatically"
    for path, default in _SPANS.items():
        yield from _longer(path, _span(old, path, default), _span(new, path, default))


def _lower_tcb(old: Any, new: Any, path: str = "minimumTcb") -> Iterator[str]:
    if isinstance(old, dict):
        for key, value in sorted(old.items()):
            yield from _lower_tcb(value, new.get(key) if isinstance(new, dict) else None, f"{path}.{key}")
    elif old is not None and not _at_least(new, old):
        yield f"{path} goes from {old} to {'nothing' if new is None else new}"


def _at_least(new: Any, old: Any) -> bool:
    """Whether a bound is as high as before; what cannot be compared counts as lower when it differs."""
    if new == old and isinstance(new, bool) == isinstance(old, bool):
        return True
    if isinstance(new, bool) or isinstance(old, bool):
        return new is True and old is False
    if isinstance(new, int | float) and isinstance(old, int | float):
        return new >= old
    if isinstance(new, str) and isinstance(old, str):
        if new.isdecimal() and old.isdecimal() and new.isascii() and old.isascii():
            return int(new) >= int(old)
        if _DATE.match(new) and _DATE.match(old):
            return new >= old
    return False


def _approvers(cluster: Object) -> set[tuple[str, str]]:
    listed = _at(cluster, "spec", "breakGlass", "approvers")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {(str(entry.get("name") or ""), str(entry.get("key") or "")) for entry in entries}


def _other_approvers(old: set[tuple[str, str]], new: set[tuple[str, str]]) -> Iterator[str]:
    """Any change: whoever loses a colleague is outvoted as easily as whoever gains one."""
    for name in sorted(new - old):
        yield f"{name[0]} may agree to overrides"
    for name in sorted(old - new):
        yield f"{name[0]} may agree to overrides no more"


def _span(cluster: Object, path: tuple[str, ...], default: str) -> Any:
    found = _at(cluster, "spec", "attestation", *path)
    return default if found is None else found


def _longer(path: tuple[str, ...], old: Any, new: Any) -> Iterator[str]:
    """A time that got longer; one that cannot be read counts as longer when it differs, and none at all as endless."""
    if new == old:
        return
    try:
        longer = not new or (bool(old) and duration(new, path[-1]) > duration(old, path[-1]))
    except BadPolicy:
        longer = True
    if longer:
        yield f"{'.'.join(path)} goes from {old or 'never'} to {new or 'never'}"


def _roots(cluster: Object) -> set[tuple[str, str]]:
    roots = _at(cluster, "spec", "attestation", "extraRoots")
    entries = [entry for entry in roots if isinstance(entry, dict)] if isinstance(roots, list) else []
    return {(str(entry.get("sha256") or ""), str(entry.get("for") or "")) for entry in entries}


def _more_evidence(old: Object, new: Object) -> Iterator[str]:
    """Types of evidence that count from now on, for the cluster and then for pools where that says more."""
    added = _evidence(new) - _evidence(old)
    for evidence in sorted(added):
        yield f"evidence {evidence} counts from now on"
    for pool in sorted(_pool_evidence(old).keys() | _pool_evidence(new).keys()):
        before, after = (_pool_evidence(one).get(pool, _evidence(one)) for one in (old, new))
        for evidence in sorted(after - before - added):
            yield f"evidence {evidence} counts from now on for pool {pool}"


def _evidence(cluster: Object) -> frozenset[str]:
    return _types(_at(cluster, "spec", "attestation", "evidence")) or frozenset(DEFAULT_EVIDENCE)


def _pool_evidence(cluster: Object) -> dict[str, frozenset[str]]:
    """The types of pools that have their own."""
    listed = _at(cluster, "spec", "pools")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {str(entry.get("name")): types for entry in entries if (types := _types(entry.get("evidence")))}


def _types(listed: Any) -> frozenset[str]:
    return frozenset(str(item) for item in listed) if isinstance(listed, list) else frozenset()


def _at(obj: Any, *path: str) -> Any:
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj
