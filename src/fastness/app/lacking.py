"""What somebody must give before a part of the control plane can be started; each a sentence and a hint."""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class LackingError(FastnessError):
    """Base; never raised itself."""


class LacksOption(LackingError):
    """The part was asked for without an option that it needs."""

    code = "lacks-option"


class LacksCluster(LackingError):
    """Nothing says where the API server is."""

    code = "lacks-cluster"
