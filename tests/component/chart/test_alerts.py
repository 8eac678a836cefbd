"""The alerts of the chart as Prometheus reads them: each fires for what it is there for, and none when all is well."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.components import require_program
from tools.chart_pages import CHART

ALERTS = CHART / "alerts.yaml"
CASES = Path(__file__).with_name("alerts_test.yaml")


@pytest.fixture(scope="module")
def promtool() -> Path:
    """The checker of Prometheus itself."""
    return require_program(Path(shutil.which("promtool") or "/usr/bin/promtool"), "prometheus")


def checked(promtool: Path, directory: Path, alerts: str) -> subprocess.CompletedProcess[str]:
    """What promtool says of alerts, by the cases."""
    (directory / ALERTS.name).write_text(alerts)
    (directory / CASES.name).write_text(CASES.read_text())
    return subprocess.run(
        [promtool, "test", "rules", CASES.name], cwd=directory, capture_output=True, text=True, check=False
    )


def test_promtool_accepts_them(promtool: Path) -> None:
    done = subprocess.run([promtool, "check", "rules", ALERTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_fires_when_it_should_and_not_when_all_is_well(promtool: Path, tmp_path: Path) -> None:
    done = checked(promtool, tmp_path, ALERTS.read_text())
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_bound_that_is_wrong_is_noticed(promtool: Path, tmp_path: Path) -> None:
    assert checked(promtool, tmp_path, ALERTS.read_text().replace("> 90", "> 900")).returncode != 0


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    names = {rule["alert"] for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]}
    fired = {
        case["alertname"]
        for test in yaml.safe_load(CASES.read_text())["tests"]
        for case in test.get("alert_rule_test", ())
        if case.get("exp_alerts")
    }
    assert fired == names
