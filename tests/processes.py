"""A second chance for tests that run real programs, and for no others.

Programs start late, sockets fill and disks stall on machines that others use as well; a test that waits for one can fail where
nothing is wrong. A test in one process has no such excuse, unless it sets the bounds of a server on real sockets to tenths of a
second (`impatient`). The marker `processes` says which is which: a test gets it by using a fixture of `FIXTURES`, or its module
states it (`pytestmark = pytest.mark.processes`). Each use of a second chance is listed by `tools/run_tests.py` with the failure
that came first, and more than a few of them fail the run.
"""

from __future__ import annotations

import pytest

FIXTURES = frozenset(
    {
        "bare_kube",
        "bed",
        "bed_machine",
        "impatient",
        "live",
        "other_swtpm",
        "real_kube",
        "real_kube_binaries",
        "real_kube_with_definitions",
        "swtpm",
        "tpm_maker",
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by what a test uses, and give the marked ones their second chance."""
    for item in items:
        if FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.processes)
        if item.get_closest_marker("processes") is not None:
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=1))
