"""The kernel that test machines boot; where it cannot be had, the test is skipped by name, or fails in CI."""

from __future__ import annotations

import os

import pytest

from fastness.sim.vms import parts


def kernel() -> bytes:
    """The kernel image."""
    try:
        return parts.kernel()
    except parts.NoRealMachine as error:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
