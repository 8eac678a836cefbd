"""What every test shares: plugins of the tree, property-test profiles, a rare collector, and a signal that shells turn off."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, Phase, settings

from fastness.runtime.memory import collect_rarely, settle_memory

pytest_plugins = [
    "tests.realkube.fixtures",
    "tests.bed.fixtures",
    "tests.embedded.fixtures",
    "tests.processes",
    "tests.release.fixtures",
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

# Servers in Go, likewise: a fifth of what kube-apiserver takes to start and to learn our kinds is its collector.
os.environ.setdefault("GOGC", "400")
# Thousands of modules and items live as long as the run; looking through them again and again took a seventh of its processor.
collect_rarely()


def pytest_collection_finish() -> None:
    """Tell the collector that what was collected stays."""
    settle_memory()


# A suite that a shell runs in the background ignores Ctrl-C, and what it starts would ignore it as well.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
