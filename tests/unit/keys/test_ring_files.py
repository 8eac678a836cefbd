"""A KMS command gets bytes and gives bytes, or a clear error."""

from __future__ import annotations

import sys

import pytest

from fastness.keys.errors import KmsFailed
from fastness.keys.ring_files import run_kms

ECHO = [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"]


def test_command_gets_the_input_and_gives_its_output() -> None:
    assert run_kms(ECHO, b"\x00abc") == (0, b"cba\x00")


def test_failing_command_gives_its_status() -> None:
    assert run_kms([sys.executable, "-c", "raise SystemExit(3)"], b"") == (3, b"")


def test_missing_command_is_told() -> None:
    with pytest.raises(KmsFailed) as caught:
        run_kms(["/nonexistent/kms"], b"")
    assert "/nonexistent/kms" in caught.value.message


def test_command_that_does_not_end_is_ended_and_its_output_not_kept() -> None:
    script = "import sys, time; sys.stdout.write('the-key'); sys.stdout.flush(); time.sleep(60)"
    with pytest.raises(KmsFailed, match="did not end") as caught:
        run_kms([sys.executable, "-c", script], b"", patience=0.5)
    assert caught.value.__cause__ is None
