"""The messages of Kubernetes 1.36, as data: one line each, `name: number field type; …` (notation: `protobuf.schema`).

    core.py     Metadata and the messages that every group shares, and kinds of the core group, without pods
    groups.py   Kinds of the named groups: apps, batch, networking, policy, rbac, ...
    pods.py     Pods and everything inside them except volumes
    volumes.py  Volumes: their sources and projections

An indented line continues the one above it. Field numbers and JSON names are facts of the public API; numbers are never used
twice for different things, so a table of one version reads the messages of another and only reports what is new.
"""

from typing import Final

from fastness.formats.protobuf.tables import core, groups, pods, volumes

MESSAGE_LINES: Final[dict[str, str]] = dict(
    line.split(": ", 1)
    for table in (core, pods, volumes, groups)
    for line in table.MESSAGES.replace("\n  ", " ").splitlines()
)
"""Every message by name, still as text: `protobuf.schema` compiles a line when it is first needed."""
