"""What every test shares: the plugins of the tree, property-test profiles, and a signal that shells turn off."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, Phase, settings

pytest_plugins = [
    "tests.realkube.fixtures",
    "tests.bed.fixtures",
    "tests.embedded.fixtures",
    "tests.processes",
    "tests.swtpm",
]

# The short form tries the same examples in every run: what it finds, it finds for whoever has changed something, and twice.
# New examples, and many, are for `make soak`.
settings.register_profile(
    "default", max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# A refusal that was taken out is noticed by any failure; nobody reads the smallest example.
settings.register_profile("mutants", settings.get_profile("default"), phases=[Phase.explicit, Phase.generate])
settings.register_profile("soak", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(
    "soak" if os.environ.get("FASTNESS_SOAK") else "mutants" if os.environ.get("FASTNESS_TRIALS") else "default"
)

# A suite that a shell runs in the background ignores Ctrl-C, and what it starts would ignore it as well.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
