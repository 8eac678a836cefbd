"""Positions in the history of a cluster: may a watch go on from one, or is this another cluster?

A cluster that was made anew, or brought back from a backup, is younger than a position that somebody took before. A watch from
there hears nothing until the cluster is as old, and whoever waits believes in objects that are long gone.
"""

from __future__ import annotations

from fastness.kube.errors import Expired


def require_same_past(newest: str, position: str) -> None:
    """Raise Expired when the newest version of a cluster lies before a position: it is not the cluster of before."""
    # Versions of kube-apiserver are decimal and comparable; of a server with others nothing can be said.
    if newest.isdecimal() and position.isdecimal() and int(newest) < int(position):
        raise Expired(f"the cluster is at version {newest}, before {position}: it was made anew or restored")
