"""A config written into the root of an image: the agent's own writer, compared with Ignition's."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastness.agent.apply.into_root import apply_into
from fastness.agent.errors import BadConfig
from fastness.agent.host.errors import DriverError
from fastness.cli.main import cli
from tests.components import require_program, require_root

IGNITION = Path("/usr/lib/dracut/modules.d/30ignition/ignition")
UNIT = "[Unit]\nDescription=Mine\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
DOCUMENT: dict[str, Any] = {
    "ignition": {"version": "3.3.0"},
    "storage": {
        "files": [
            {"path": "/etc/chrony.conf", "mode": 0o640, "overwrite": True, "contents": {"source": "data:,server%20a"}},
            {"path": "/usr/lib/mine/deep/x", "contents": {"source": "data:;base64,AAECAw=="}},
            {"path": "/etc/packed", "mode": 0o600, "contents": {
                "source": "data:;base64,H4sIAAAAAAACA8tIzcnJ5wIAIDA6NgYAAAA=", "compression": "gzip"}},
        ],
        "links": [{"path": "/etc/localtime", "target": "/usr/share/zoneinfo/UTC"}],
    },
    "systemd": {"units": [
        {"name": "mine.service", "contents": UNIT, "enabled": True},
        {"name": "other.service", "dropins": [{"name": "10-a.conf", "contents": "[Service]\nNice=1\n"}]},
        {"name": "never.service", "mask": True},
    ]},
}  # fmt: skip


def tree(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every file and link below a directory: what it is, its mode, its content."""
    tree = {}
    for place, folders, files in os.walk(root):
        for name in (*files, *(each for each in folders if Path(place, each).is_symlink())):
            path = Path(place, name)
            status = path.lstat()
            is_link = stat.S_ISLNK(status.st_mode)
            content = str(path.readlink()).encode() if is_link else path.read_bytes()
            mode = 0 if is_link else stat.S_IMODE(status.st_mode)
            tree[f"/{path.relative_to(root)}"] = ("link" if is_link else "file", mode, content)
    return tree


def test_an_image_gets_the_same_files_from_us_as_from_ignition(tmp_path: Path) -> None:
    require_program(IGNITION, "ignition")
    require_root("ignition-apply")
    ours, theirs, config = tmp_path / "ours", tmp_path / "theirs", tmp_path / "config.ign"
    for root in (ours, theirs):
        (root / "etc").mkdir(parents=True)
    config.write_text(json.dumps(DOCUMENT))
    program = tmp_path / "ignition-apply"
    program.symlink_to(IGNITION)
    command = [str(program), "--ignore-unsupported", f"--root={theirs}", str(config)]
    answer = subprocess.run(
        command, env={**os.environ, "container": "oci"}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    result = CliRunner().invoke(cli, ["agent", "apply", "--root", str(ours), str(config)])
    assert result.exit_code == 0, result.output
    mine, others = tree(ours), tree(theirs)
    wants = mine.pop("/etc/systemd/system/multi-user.target.wants/mine.service")
    assert wants == ("link", 0, b"/etc/systemd/system/mine.service")
    presets = others.pop("/etc/systemd/system-preset/20-ignition.preset")
    assert presets[2] == b"enable mine.service\n", "Ignition leaves to a preset what we say with a link"
    others.pop("/etc/.ignition-result.json", None)
    assert mine == others


def test_nothing_is_written_outside_the_directory_and_not_onto_this_machine(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "etc").mkdir(parents=True)
    outside.mkdir()
    (root / "etc" / "mine").symlink_to(outside)
    entry = {"path": "/etc/mine/x", "contents": {"source": "data:,x"}}
    config = {"spec": {"config": {"ignition": {"version": "3.5.0"}, "storage": {"files": [entry]}}}}
    with pytest.raises(DriverError):
        apply_into(root, config)
    assert list(outside.iterdir()) == []
    file = tmp_path / "c.ign"
    file.write_text(json.dumps(config["spec"]["config"]))
    result = CliRunner().invoke(cli, ["agent", "apply", "--root", "/", str(file)])
    assert result.exit_code == 2
    assert "--root is this machine" in result.output


def test_a_password_is_for_machines_and_what_is_no_config_is_told(tmp_path: Path) -> None:
    users = {"users": [{"name": "core", "passwordHash": "h"}]}
    with pytest.raises(BadConfig, match="belongs to a machine"):
        apply_into(tmp_path, {"spec": {"config": {"ignition": {"version": "3.5.0"}, "passwd": users}}})
    for text, says in (("{", "JSON"), ("[]", "neither a MachineConfig nor Ignition"), ('{"kind": "Node"}', "neither")):
        (tmp_path / "x").write_text(text)
        result = CliRunner().invoke(cli, ["agent", "apply", "--root", str(tmp_path), str(tmp_path / "x")])
        assert (result.exit_code, says in result.output) == (2, True), result.output
