"""Which encrypted volume a Machine has, or shall have, and why not.

A pool of model ConfidentialCluster names at most one volume. New machines make it at their first boot; machines that run keep
what they have, because what is on an open disk does not become secret by being copied: they are replaced.

A Machine that the Clevis pin enrolled has a root that the pin opens, for as long as its pool says so (decision 69). Nothing of it
is reported, so its condition says no more than that, and what this way gives less than the agent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.fastness_dev.cluster import CLEVIS_PIN, ConfidentialCluster, Disk
from fastness.kinds.fastness_dev.trust_model import TrustModel, clevis_pools, enforces, trust_model
from fastness.kinds.objects import Condition, view
from fastness.kinds.trusted_execution.disks import UNMEASURED, VolumeStatus
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of

NONE: Final = "none"
APPROVERS: Final = "Approvers"
CONDITION: Final = "DisksEncrypted"
RECOVERABLE: Final = "DisksRecoverable"
OPEN_STATES: Final = frozenset({"Open"})
ROOT: Final = "root"
WEAKER: Final = (
    "opened by the Clevis pin, which is weaker than the agent: it takes server and path from the disk, that is, from the host; "
    "its key is text, which it prints where the console or journal has it; its attestation key was trusted on first use; "
    "root on the running machine gets the key again, unless its image measures boot phases; nothing reports which disk was opened"
)
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a pool says about the disk of its machines."""

    volume: str
    integrity: str
    pin: str
    recovery: str = "Nobody"


def pool_disk(cluster: Object | None, pool: str) -> Settings | None:
    """The encrypted volume of machines of a pool; None where they have none."""
    # Only where each node is measured: a host that proves nothing could not get the key, and would never boot again.
    if trust_model(cluster, pool) is not TrustModel.CONFIDENTIAL_CLUSTER:
        return None
    pools = view(cluster or {}, ConfidentialCluster).spec.pools
    disk = next((entry.disk for entry in pools if entry.name == pool), Disk())
    return Settings(disk.volume, disk.integrity, disk.pin, disk.recovery) if disk.volume != NONE else None


def volume_of(machine: Machine, volume: str) -> VolumeStatus | None:
    """What is recorded of a volume of a Machine."""
    return next((entry for entry in machine.status.disks if entry.volume == volume), None)


def lacks_key(machine: Machine, settings: Settings | None) -> bool:
    """Whether a Machine shall get a key for the volume of its pool: it may take part, has none, and has not run without."""
    if settings is None or membership_of(machine) is not Membership.APPROVED:
        return False
    if is_pinned(machine):
        # Also one that proved itself: the pin asks in an ordinary session, which may come before the key is made.
        return is_pin_served(machine, settings) and volume_of(machine, ROOT) is None
    return volume_of(machine, settings.volume) is None and not has_run(machine)


def is_pinned(machine: Machine) -> bool:
    """Whether the Clevis pin enrolled a Machine, and opens its root."""
    return machine.status.pin == CLEVIS_PIN


def is_pin_served(machine: Machine, settings: Settings | None) -> bool:
    """Whether the pool of a Machine, as it is now, has the key of its root given to the Clevis pin."""
    return is_pinned(machine) and settings is not None and (settings.pin, settings.volume) == (CLEVIS_PIN, ROOT)


def has_run(machine: Machine) -> bool:
    """Whether a machine has been given something: the disk that it has then is the one that it keeps."""
    return bool(machine.status.last_attested or machine.status.overridden_until)


def condition_of(machine: Machine, settings: Settings | None) -> Condition | None:
    """What the condition `DisksEncrypted` of a Machine says; None where nothing has to be said."""
    if is_pinned(machine):
        return _pinned_condition(machine, settings)
    if settings is None and not machine.status.disks:
        return None
    if not machine.status.disks:
        if not has_run(machine):
            return _said("False", "NotMadeYet", "the machine makes its encrypted volume at its first boot")
        volume = settings.volume if settings else ""
        return _said(
            "False", "OpenDisk",
            f"the machine ran before its pool had the encrypted volume {volume}, and keeps what it has on an open disk: "
            "replace the node to have one",
        )  # fmt: skip
    doubtful = next((entry for entry in machine.status.disks if entry.doubtful is not None), None)
    if doubtful is not None:
        return _said("False", doubtful.state, doubtful.message)
    silent = next((entry for entry in machine.status.disks if entry.message), None)
    if silent is not None:
        return _said("False", UNMEASURED if silent.state == UNMEASURED else "NotOpened", silent.message)
    waiting = [entry.volume for entry in machine.status.disks if entry.state not in OPEN_STATES]
    if waiting:
        return _said("False", "NotOpenedYet", f"the machine has not reported that it opened {', '.join(waiting)}")
    return _said("True", "Opened", f"opened by proof: {', '.join(entry.volume for entry in machine.status.disks)}")


def recoverable_of(machine: Machine, settings: Settings | None) -> Condition | None:
    """What the condition `DisksRecoverable` says; None where nobody but the machine gets its keys."""
    if settings is None or settings.recovery != APPROVERS or not machine.status.disks:
        return None
    volumes = ", ".join(entry.volume for entry in machine.status.disks)
    message = f"two approvers of break-glass can have the key of {volumes}"
    return Condition(type=RECOVERABLE, status="True", reason=APPROVERS, message=message)


def _pinned_condition(machine: Machine, settings: Settings | None) -> Condition:
    if not is_pin_served(machine, settings):
        message = (
            "its pool does not use the Clevis pin any more, so the key of its root is given to nobody: replace the node"
        )
        return _said("False", "PinNotServed", message)
    recorded = volume_of(machine, ROOT)
    if recorded is None or recorded.unlocked_at is None:
        return _said("False", "NotMadeYet", f"the key of its root was not asked for yet; it is {WEAKER}")
    # Not True: the key was given, and what the machine did with it nobody tells.
    return _said("Unknown", "ClevisPin", f"its root is {WEAKER}")


def _said(status: str, reason: str, message: str) -> Condition:
    return Condition(type=CONDITION, status=status, reason=reason, message=message)


def is_open(machine: Machine) -> bool:
    """Whether the machine's last session reported an encrypted volume that it opened."""
    return any(entry.state in OPEN_STATES and not entry.message for entry in machine.status.disks)


def pools_on_open_disks(cluster: Object | None, machines: Iterable[Machine]) -> dict[str, int]:
    """The enforcing pools whose machines were given something and keep it on open disks, with how many those are."""
    counts: dict[str, int] = {}
    for machine in machines:
        if is_pinned(machine):
            continue
        if enforces(cluster, machine.status.pool) and has_run(machine) and not is_open(machine):
            counts[machine.status.pool] = counts.get(machine.status.pool, 0) + 1
    return dict(sorted(counts.items()))


def pools_opened_by_clevis(cluster: Object | None, machines: Iterable[Machine]) -> dict[str, int]:
    """The pools whose roots the Clevis pin opens, or which have machines that it enrolled, with how many those are."""
    counts = dict.fromkeys(clevis_pools(cluster), 0)
    for machine in machines:
        if is_pinned(machine):
            counts[machine.status.pool] = counts.get(machine.status.pool, 0) + 1
    return dict(sorted(counts.items()))
