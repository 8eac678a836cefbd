"""Exit codes, the same for every verb.

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | the answer is no: something is wrong with what was asked about |
| 2 | the request itself is wrong: unknown option, unreadable file |
| 3 | something that is needed is missing or in use: a port, a directory, a component |
| 4 | the cluster cannot be reached or refused the caller |
| 70 | a defect of ours |
| 130 | interrupted |

One verb has a code of its own: `plan` ends with 2 when something will reboot, so that a pipeline can stop there.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the process says when it ends."""

    OK = 0
    NO = 1
    USAGE = 2
    MISSING = 3
    CLUSTER = 4
    DEFECT = 70
    INTERRUPTED = 130
