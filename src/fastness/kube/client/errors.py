"""Why the cluster could not even be asked.

    ConfigError          code, hint
    ├── NoCluster        nothing says where the cluster is
    ├── BadConfig        a file or a field of it is wrong; the message names both
    └── Unsupported      a way to reach a cluster that we do not take on purpose

What an API server that was reached answers is an `ApiError` of `kube/errors.py`.
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class ConfigError(FastnessError):
    """How to reach the cluster is not known."""

    code = "cluster-config"


class NoCluster(ConfigError):
    """Nothing says where the cluster is."""

    code = "no-cluster"


class BadConfig(ConfigError):
    """A file, or a field of it, is wrong."""

    code = "bad-cluster-config"


class Unsupported(ConfigError):
    """A way to reach a cluster that is not taken."""

    code = "unsupported-cluster-config"
