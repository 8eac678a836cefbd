"""These tests kill processes in thought, never the machine: waiting for the disk would only make them slow."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """fsync does nothing."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
