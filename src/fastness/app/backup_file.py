"""What the backup of a Kubernetes says about itself: facts that the head of the file covers, as it covers every row.

origin      kubernetes; the backup of a state directory has none
format      which program can read it
fastness    the version that made it
made        when
cluster     the uid of the cluster's kube-system, to tell two clusters apart
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from fastness import __version__
from fastness.app.parts import LackingError
from fastness.kinds.objects import rfc3339

FORMAT: Final = 1
ORIGIN: Final = "kubernetes"


class OtherBackup(LackingError):
    """A backup that is not for this place or not for this version."""

    code = "other-backup"


def facts(cluster: str, now: datetime) -> dict[str, str]:
    """What a new backup says about itself."""
    return {
        "origin": ORIGIN, "format": str(FORMAT), "fastness": __version__, "made": rfc3339(now), "cluster": cluster,
    }  # fmt: skip


def require_of_kubernetes(stated: Mapping[str, str]) -> None:
    """Refuse a file that was not made of a Kubernetes, or by a version with another format; raises OtherBackup."""
    if stated.get("origin") != ORIGIN:
        raise OtherBackup(
            "this is the backup of a state directory", "Restore it with --state, without --kubeconfig and --context."
        )
    number = stated.get("format", "")
    if number == str(FORMAT):
        return
    made = f"this backup has format {number or 'none'}, made by Fastness {stated.get('fastness', 'of unknown version')}"
    raise OtherBackup(f"{made}; this version reads format {FORMAT}", "Run the version that made it, or a later one.")


def require_of_state_directory(stated: Mapping[str, str]) -> None:
    """Refuse the backup of a Kubernetes where one of a state directory is wanted; raises OtherBackup."""
    if stated.get("origin"):
        raise OtherBackup(
            "this is the backup of a Kubernetes", "Restore it with --kubeconfig or --context of an empty cluster."
        )
