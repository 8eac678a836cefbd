"""The kinds of Cluster API itself that are read: Cluster and Machine. They are defined by that project and not by us."""

from __future__ import annotations

from typing import Final

from fastness.kinds.kind import Resource

CORE: Final = "cluster.x-k8s.io"
CLUSTER_NAME: Final = f"{CORE}/cluster-name"
PAUSED: Final = f"{CORE}/paused"
SECRET_TYPE: Final = f"{CORE}/secret"
CLUSTERS: Final = Resource(CORE, "v1beta2", "clusters", "Cluster", namespaced=True)
MACHINES: Final = Resource(CORE, "v1beta2", "machines", "Machine", namespaced=True)
