"""How the packages of real components are installed: nothing that they bring starts by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.components import no_services

NOT_ALLOWED = 101


def test_packages_that_ask_whether_they_may_start_a_service_hear_no(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with no_services(policy):
        assert subprocess.run([policy, "prometheus", "start"], check=False, timeout=30).returncode == NOT_ALLOWED
    assert not policy.exists()


def test_the_answer_is_gone_although_an_installation_failed(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with pytest.raises(OSError, match="no network"), no_services(policy):
        raise OSError("no network")
    assert not policy.exists()


def test_what_a_person_has_decided_stays(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    with no_services(policy):
        assert policy.read_text().endswith("exit 0\n")
    assert policy.exists()
