"""The join ticket in a pool's user-data: how long it is good, and for how many machines.

    uses = uses_for(trust, wanted)                  # 0 is any number
    due = rotates_at(ticket)                        # a new one then; this one stays good for one more rotation

User-data is the host's word and lies around in clouds: whoever finds it can knock. So the ticket in it changes every day, the one
before is good for a day more, because machines are created with the Secret of yesterday; and where machines enrol it is good for
twice the machines that the pool wants, ten at least, since failed machines are replaced. Machines of other pools show no key that
could be counted (decision 11): there only time ends a ticket.

What a pool wants is what its machine sets say, or an annotation of the pool where machines are made by hand, whichever is more;
else the machines that it has. Only those that attested count: keys that somebody made up must not raise the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.kinds.fastness_dev.join_ticket import MOST_USES
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name
from fastness.machineconfig.boot_images.makers import user_data_of
from fastness.machineconfig.render.errors import BadPointer

Object = Mapping[str, Any]
ROTATION: Final = timedelta(hours=24)
LIFETIME: Final = 2 * ROTATION
# A machine that enrolled in time may wait a week for approval and a day more to attest: its use is counted then.
KEPT_AFTER_EXPIRY: Final = timedelta(days=8)
FEWEST_USES: Final = 10
_MOST_DIGITS: Final = 6


def wanted_machines(pool: Object, makers: Iterable[Object], attested: int) -> int:
    """How many machines a pool wants; raises BadPointer for an annotation that is no number."""
    name = object_name(pool).name
    mine = [maker for maker in makers if user_data_of(maker) == f"{name}{names.USER_DATA_SUFFIX}"]
    in_sets = sum(_replicas(maker) for maker in mine)
    text = annotations_of(pool).get(names.WANTED_MACHINES)
    if text is None:
        return in_sets if mine else attested
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise BadPointer(
            f"{names.WANTED_MACHINES} of pool {name} is {text[:32]!r}", "write the number of machines that the pool has"
        )
    return max(in_sets, int(text))


def uses_for(trust: TrustModel, limit: int) -> int:
    """How many machines a ticket in the user-data of a pool is good for; 0 where nobody counts.

    Hosts of containers fetch with it from the config server, which takes only tickets without a limit.
    """
    if trust is not TrustModel.CONFIDENTIAL_CLUSTER:
        return 0
    return min(MOST_USES, max(FEWEST_USES, 2 * limit))


def changed_uses(before: int, uses: int, *, current: bool) -> int:
    """What the limit of a ticket becomes: that of the current one grows with the pool, and no limit shrinks."""
    if not uses or not before:
        return uses
    return max(before, uses) if current else before


def rotates_at(ticket: Object) -> datetime:
    """When a ticket is to be replaced, so that it stays good for one more rotation."""
    return datetime.fromisoformat(ticket["spec"]["expires"]) - ROTATION


def is_due(ticket: Object, now: datetime) -> bool:
    """Whether a ticket is to be replaced now: its day is over, or it was made to last longer than any does."""
    left = datetime.fromisoformat(ticket["spec"]["expires"]) - now
    return left <= ROTATION or left > LIFETIME


def _replicas(maker: Object) -> int:
    replicas = (maker.get("spec") or {}).get("replicas")
    return replicas if type(replicas) is int and replicas >= 0 else 1
