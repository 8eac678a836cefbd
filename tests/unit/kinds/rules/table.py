"""All rows, and how many rules of each kind they stand for."""

from __future__ import annotations

from typing import Final

from tests.unit.kinds.rules import cases, machine_rows, operator_rows, platform_spec_rows, platform_status_rows

CASES: Final = [*machine_rows.ROWS, *operator_rows.ROWS, *platform_spec_rows.ROWS, *platform_status_rows.ROWS]

# As many as the public API has over all its variants. Of the 107 of the ControllerConfig two are the older form of a rule whose
# newer form we have: the partitions of AWS in a role's name, and how many vCenters may come after installation.
COUNTS: Final = {
    cases.RUNTIME: 9, cases.NODE: 25, cases.POOL: 8, cases.OPERATOR: 74, cases.BUILD: 21, cases.OS_CONFIG: 12, cases.STREAM: 10,
    cases.PINNED: 2, cases.CONTROLLER: 107 - 2,
}  # fmt: skip
