"""The parts of a control plane, by the names that users know them by, and what each lacks when it cannot be started.

Nothing heavy is imported here: the command line reads this before it knows whether anything is to be run.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fastness.runtime.errors import FastnessError


class Part(StrEnum):
    """What a process can run; the values are the roles of `fastness serve`."""

    CONTROLLERS = "controllers"
    CONFIG_SERVER = "configserver"
    ENROLMENT = "enrol"
    BROKER = "broker"
    GATE = "gate"
    WEBHOOK = "webhook"
    PAGE = "page"


DOORS: Final = frozenset(Part) - {Part.CONTROLLERS}
WITH_OWN_API: Final = frozenset(Part) - {Part.WEBHOOK}
"""The parts of a control plane with an API of its own, which asks the rules of admission itself."""
PORTS: Final = {
    Part.CONFIG_SERVER: 22624, Part.ENROLMENT: 8000, Part.BROKER: 8080, Part.GATE: 22623, Part.WEBHOOK: 9443,
    Part.PAGE: 8443,
}  # fmt: skip
INTERNAL_PORT: Final = 22626
"""The second port of the config server, for gate and broker."""


class LackingError(FastnessError):
    """What somebody must give before a part can be started; never raised itself."""


class LacksOption(LackingError):
    """The part was asked for without an option that it needs."""

    code = "lacks-option"


class LacksCluster(LackingError):
    """Nothing says where the API server is, or it does not have what every part needs."""

    code = "lacks-cluster"
