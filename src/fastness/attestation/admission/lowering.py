"""What makes a ConfidentialCluster weaker: one partial order, as a table with a row for each field.

    weakenings(old, new)          # what the change lowers, by field; empty: nothing is weaker

A row names a field of the schema, the direction in which it weakens, and why. Each compares what the field *means*, with defaults
filled in: an unset `evidence` is tpm, tdx and snp for ever, so that no upgrade widens a cluster and setting it is no trick.
Fields that cannot weaken are listed too, with the reason; a test walks the schema, so that a new field is in one of the two. And
if one is forgotten all the same, any change of it weakens: who adds a field is asked for its direction, not trusted to recall it.

It is an order: no change weakens nothing, values that cannot be compared weaken in both directions, and no detour of several
steps hides what the direct change would show (property tests). What is confirmed, and how, is `confirming`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from fastness.attestation.admission import strength
from fastness.attestation.admission.strength import at, entries
from fastness.attestation.evidence.roots import DEFAULT_EVIDENCE
from fastness.kinds.fastness_dev.image_approval import BUILT_HERE
from fastness.kinds.fastness_dev.trust_model import evicts, listed_pools, mode_of, trust_model

Object = Mapping[str, Any]
Compare = Callable[[Object, Object], Iterator[str]]


class Weakening(NamedTuple):
    """One thing that a change lowers: the field, and what happens to it in words."""

    field: str
    words: str


class Row(NamedTuple):
    """One field: the direction in which it weakens, why that is weaker, and the comparison of two objects."""

    field: str
    weaker: str
    because: str
    compare: Compare


def weakenings(old: Object, new: Object) -> tuple[Weakening, ...]:
    """What the change from `old` to `new` lowers."""
    listed = (Weakening(row.field, words) for row in ORDER for words in row.compare(old, new))
    return (*listed, *_unlisted(old, new))


def _unlisted(old: Object, new: Object) -> Iterator[Weakening]:
    """Changes of fields that neither list names: whether they weaken is not known, so they do."""
    before, after = (dict(strength.leaves(side.get("spec"), _is_listed)) for side in (old, new))
    for place in sorted(before.keys() | after.keys()):
        if before.get(place) != after.get(place):
            yield Weakening(place.field, f"{place.label} changes, and nothing says in which direction it is weaker")


def _is_listed(field: str) -> bool:
    """Whether one of the lists has a field, or the object that it is in."""
    rows = {row.field for row in ORDER} | CANNOT_WEAKEN.keys()
    return any(field == row or field.startswith((f"{row}.", f"{row}[]")) for row in rows)


def _mode(old: Object, new: Object) -> Iterator[str]:
    if mode_of(new).strength < mode_of(old).strength:
        yield f"mode goes from {mode_of(old)} to {mode_of(new)}"


def _trust_model(old: Object, new: Object) -> Iterator[str]:
    for pool in sorted(listed_pools(old).keys() | listed_pools(new).keys()):
        before, after = trust_model(old, pool), trust_model(new, pool)
        if after.strength < before.strength:
            yield f"pool {pool} goes from {before} to {after}"


def _evict(old: Object, new: Object) -> Iterator[str]:
    for pool in sorted(listed_pools(old)):
        # In a mode that does not enforce nobody is put out, whatever the field says: the mode's own row speaks of that.
        already = any(entry.get("evict") is True for entry in entries(new, "pools") if entry.get("name") == pool)
        if evicts(old, pool) and not already:
            yield f"pods stay on nodes of pool {pool} that prove nothing"


def _pool_disk(field: str, strongest_first: tuple[str, ...], words: str) -> Compare:
    """A setting of the disks of pools, whose values are told in order; one that is not set, or not known, is the weakest."""

    def compare(old: Object, new: Object) -> Iterator[str]:
        for pool in sorted(listed_pools(old).keys() | listed_pools(new).keys()):
            before, after = (_disk_setting(side, pool, field, strongest_first) for side in (old, new))
            if after > before:
                yield words.format(pool=pool, after=strongest_first[min(after, len(strongest_first) - 1)])

    return compare


def _disk_setting(cluster: Object, pool: str, field: str, strongest_first: tuple[str, ...]) -> int:
    """The place of a pool's setting in the order. An unset pin is the agent, unset nobody recovers; no other protects unset."""
    disk = next((entry.get("disk") for entry in entries(cluster, "pools") if entry.get("name") == pool), None)
    value = disk.get(field) if isinstance(disk, Mapping) else None
    if value is None:
        return 0 if field in ("pin", "recovery") else len(strongest_first) - 1
    return strongest_first.index(value) if value in strongest_first else len(strongest_first)


def _evidence(old: Object, new: Object) -> Iterator[str]:
    for evidence in sorted(_cluster_types(new) - _cluster_types(old)):
        yield f"evidence {evidence} counts from now on"


def _pool_evidence(old: Object, new: Object) -> Iterator[str]:
    """Types that count for a pool from now on; what the cluster's own list adds is said once, by its row."""
    added = _cluster_types(new) - _cluster_types(old)
    for pool in sorted(_pool_types(old).keys() | _pool_types(new).keys()):
        before, after = (_pool_types(side).get(pool, _cluster_types(side)) for side in (old, new))
        for evidence in sorted(after - before - added):
            yield f"evidence {evidence} counts from now on for pool {pool}"


def _cluster_types(cluster: Object) -> frozenset[str]:
    return strength.texts(at(cluster, "attestation", "evidence")) or frozenset(DEFAULT_EVIDENCE)


def _pool_types(cluster: Object) -> dict[str, frozenset[str]]:
    """The types of pools that have their own."""
    pools = entries(cluster, "pools")
    return {str(pool.get("name")): types for pool in pools if (types := strength.texts(pool.get("evidence")))}


def _roots(old: Object, new: Object) -> Iterator[str]:
    before, after = ({_root(entry) for entry in entries(side, "attestation", "extraRoots")} for side in (old, new))
    for digest, purpose in sorted(after - before):
        yield f"root {digest} is trusted for {purpose or 'everything'}"


def _root(entry: Object) -> tuple[str, str]:
    return str(entry.get("sha256") or ""), str(entry.get("for") or "")


def _minimum_tcb(old: Object, new: Object) -> Iterator[str]:
    yield from strength.lower_bounds(
        at(old, "attestation", "minimumTcb"), at(new, "attestation", "minimumTcb"), "minimumTcb"
    )


def _approval(old: Object, new: Object) -> Iterator[str]:
    if at(old, "join", "approval") == "Manual" and at(new, "join", "approval") != "Manual":
        yield "machines are approved automatically"


def _legacy_stubs(old: Object, new: Object) -> Iterator[str]:
    before, after = (
        {
            (str(entry.get("serverName")), str(pool))
            for entry in entries(side, "join", "legacyStubs")
            for pool in entry.get("pools") or ("-",)
        }
        for side in (old, new)
    )
    for server_name, pool in sorted(after - before):
        yield f"anybody gets the configuration of pool {pool} under the name {server_name}"


def _standing_approval(old: Object, new: Object) -> Iterator[str]:
    before, after = (at(side, "images", "approval") == BUILT_HERE for side in (old, new))
    if after and not before:
        pools = ", ".join(sorted(strength.texts(at(new, "images", "pools")))) or "none yet"
        yield f"images that are built here count without anybody's approval (pools: {pools})"


def _standing_pools(old: Object, new: Object) -> Iterator[str]:
    """Pools that the standing approval is for, whether it is on yet or not: who switches it on need not look at them again."""
    before, after = (strength.texts(at(side, "images", "pools")) for side in (old, new))
    for pool in sorted(after - before):
        yield f"a standing approval of images that are built here is for pool {pool} too"


def _signers(old: Object, new: Object) -> Iterator[str]:
    """Signatures that images needed and need no more; another key, or fewer places, is such a one."""
    after = {str(entry.get("name")): entry for entry in entries(new, "images", "signers")}
    for before in entries(old, "images", "signers"):
        name = str(before.get("name"))
        now, places = after.get(name), strength.texts(before.get("images"))
        places_now = strength.texts(now.get("images")) if now is not None else frozenset()
        if now is None or now.get("key") != before.get("key"):
            yield f"images need no signature by {name} with its old key any more"
        elif places_now and not (places and places <= places_now):
            yield f"fewer images need a signature by {name}"


def _longer(default: str, *path: str) -> Compare:
    return lambda old, new: strength.longer(old, new, path, default)


def _switched_on(words: str, *path: str) -> Compare:
    def compare(old: Object, new: Object) -> Iterator[str]:
        if at(new, *path) is True and at(old, *path) is not True:
            yield words

    return compare


def _changed(gained: str, lost: str, *path: str) -> Compare:
    return lambda old, new: strength.changed(entries(old, *path), entries(new, *path), gained, lost)


ORDER: Final[tuple[Row, ...]] = (
    Row("mode", "lower", "Audit lets a ticket pass for proof, Disabled asks for nothing", _mode),
    Row("pools[].trustModel", "weaker", "a pool that is not listed is confidential while the mode asks for proof", _trust_model),
    Row("pools[].evidence", "more types", "a machine may choose the weakest that counts", _pool_evidence),
    Row("pools[].evict", "off", "pods keep running where nothing is proved any more", _evict),
    Row("pools[].disk.volume", "less of the disk", "what new machines keep lies on a disk that their host reads",
        _pool_disk("volume", ("root", "var", "none"), "new machines of pool {pool} encrypt less of their disks: {after}")),
    Row("pools[].disk.pin", "Clevis", "the pin takes server and path from the disk, and prints the key",
        _pool_disk("pin", ("Agent", "Clevis"), "disks of pool {pool} are opened by the Clevis pin")),
    Row("pools[].disk.integrity", "none", "what the host changes on a disk is read as if the machine had written it",
        _pool_disk("integrity", ("hmac-sha256", "none"), "what the host changes on disks of pool {pool} is not noticed")),
    Row("pools[].disk.recovery", "Approvers", "two people have what is on a disk without proving any machine",
        _pool_disk("recovery", ("Nobody", "Approvers"), "two approvers can have the keys of disks of pool {pool}")),
    Row("attestation.evidence", "more types", "a machine may choose the weakest that counts", _evidence),
    Row("attestation.extraRoots", "more", "whoever holds that key vouches for any machine", _roots),
    Row("attestation.reattestInterval", "longer", "a machine that was changed goes unnoticed for longer",
        _longer("15m", "attestation", "reattestInterval")),
    Row("attestation.tokenLifetime", "longer", "a stolen token is good for longer",
        _longer("10m", "attestation", "tokenLifetime")),
    Row("attestation.challengeLifetime", "longer", "evidence may be relayed for longer",
        _longer("60s", "attestation", "challengeLifetime")),
    Row("attestation.collateralStaleness", "longer", "a revocation by the vendor is learned later",
        _longer("24h", "attestation", "collateralStaleness")),
    Row("attestation.minimumTcb", "lower", "firmware with known holes counts again", _minimum_tcb),
    Row("attestation.tdx.allowSeptVe", "on", "the host can make pages of a trust domain fault",
        _switched_on("trust domains count whose pages the host can make fault", "attestation", "tdx", "allowSeptVe")),
    Row("attestation.missed.cordonAfter", "longer", "new pods reach a machine that proves nothing for longer",
        _longer("15m", "attestation", "missed", "cordonAfter")),
    Row("attestation.missed.drainAfter", "longer", "pods stay on a machine that proves nothing for longer",
        _longer("", "attestation", "missed", "drainAfter")),
    Row("join.approval", "Automatic", "no person looks at a new machine", _approval),
    Row("join.trustOnFirstUse", "on", "a key that nobody vouches for is accepted",
        _switched_on("machines are trusted on first use", "join", "trustOnFirstUse")),
    Row("join.legacyStubs", "more", "whoever reaches the gate under that name gets secrets of the pool, and a token to join it",
        _legacy_stubs),
    Row("images.approval", "BuiltHere", "whoever writes a MachineOSConfig decides what machines of its pool may boot",
        _standing_approval),
    Row("images.pools", "more", "the same, for one more pool",
        _standing_pools),
    Row("images.signers", "fewer", "images count that nobody signed", _signers),
    Row("images.platforms", "any change", "machines count whose firmware starts what other keys signed, or what nobody signed",
        _changed("machines with the firmware {name} count", "firmware {name} is not asked for any more", "images", "platforms")),
    Row("breakGlass.approvers", "any change", "whoever loses a colleague is outvoted as easily as whoever gains one",
        _changed("{name} may agree to overrides", "{name} may agree to overrides no more", "breakGlass", "approvers")),
    Row("breakGlass.delay", "shorter", "less time to see who was appointed before it counts",
        lambda old, new: strength.shorter(old, new, ("breakGlass", "delay"), "1h")),
    Row("witnesses", "any change", "whoever replaces the witnesses can roll the record back unseen",
        _changed("the record is witnessed by {name}", "the record is witnessed by {name} no more", "witnesses")),
)  # fmt: skip

CANNOT_WEAKEN: Final[Mapping[str, str]] = {
    "simulated": "immutable, and part of the store's identity",
    "pools[].name": "says which pool is meant; what is asked of it is in the other fields",
    "attestation.extraRoots[].reason": "says to people why a root is trusted; which one it is, is in the other fields",
    "delivery.via": "gate and broker ask for the same grant",
    "delivery.sync": "when a copy is made, not who may read it",
    "delivery.interval": "when a copy is made, not who may read it",
}
