"""What every test shares: the plugins of the tree, property-test profiles, and a signal that shells turn off."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.realkube.fixtures",
    "tests.bed.fixtures",
    "tests.embedded.fixtures",
    "tests.processes",
    "tests.swtpm",
]

settings.register_profile("default", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("soak" if os.environ.get("FASTNESS_SOAK") else "default")

# A suite that a shell runs in the background ignores Ctrl-C, and what it starts would ignore it as well.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
