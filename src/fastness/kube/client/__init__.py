"""The HTTPS adapter: the `Cluster` port on any Kubernetes API server.

`kubeconfig.py` parses, `config.py` finds the cluster as kubectl does, `tls.py` and `tokens.py` turn that into trust and identity.
`transport.py` is one HTTP client with time-outs and careful retries (`retry.py` says what is safe), `lines.py` and `watching.py`
read streams, `client.py` is the adapter itself.
"""

from fastness.kube.client.client import KubeCluster, connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.client.connection import Connection, Impersonation

__all__ = ["Connection", "Impersonation", "KubeCluster", "Surroundings", "connect", "find"]
