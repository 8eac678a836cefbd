"""Telling the service manager that a process is ready."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from fastness.agent.host.own_process import tell_ready


@pytest.mark.parametrize("hidden", [False, True])
def test_whoever_asked_is_told(hidden: bool) -> None:
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"@fastness-{Path(place).name}" if hidden else f"{place}/notify"
        manager.bind(f"\0{name[1:]}" if hidden else name)
        manager.settimeout(5)
        assert tell_ready({"NOTIFY_SOCKET": name}, "open")
        assert manager.recv(100) == b"READY=1\nSTATUS=open"
        assert tell_ready({"NOTIFY_SOCKET": name})
        assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/at/all"])
def test_nobody_there_is_no_failure(address: str) -> None:
    assert not tell_ready({"NOTIFY_SOCKET": address} if address else {})
