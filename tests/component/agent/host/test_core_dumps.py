"""A process that forbids dumps of itself, looked at from inside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[4] / "src"
LOOK = """
import ctypes, resource
from fastness.agent.host.own_process import forbid_core_dumps
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
before = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
forbid_core_dumps()
print(before, ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))
"""


def test_a_process_that_forbids_it_is_dumped_neither_to_a_file_nor_to_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "0", "0", "0"]
