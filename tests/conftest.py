"""What every test shares: property-test profiles, and a second chance for tests with real processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.realkube.fixtures", "tests.embedded.fixtures", "tests.swtpm"]

settings.register_profile("default", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("soak" if os.environ.get("FASTNESS_SOAK") else "default")

# A suite that a shell runs in the background ignores Ctrl-C, and what it starts would ignore it as well.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Rings whose tests talk to real processes over real sockets and disks, on machines that others use as well.
SECOND_CHANCE = frozenset({"component", "contract", "differential", "e2e"})
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give those tests one second chance; the summary counts and names each use, so that a test that needs it is seen."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in SECOND_CHANCE:
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=1))
