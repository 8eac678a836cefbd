"""`fastness agent join --unless-joined`: a node whose certificate counts asks for nothing, any other one proves itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.agent.boot.node_certificates import joined_node
from fastness.cli.main import cli
from fastness.crypto.x509 import CertificateAuthority
from fastness.runtime.clock import SystemEntropy

NODE = "worker-0a1b2c"


def place(directory: Path, lifetime: timedelta, name: str = f"system:node:{NODE}") -> Path:
    """A certificate where the kubelet has its own."""
    now = datetime.now(UTC)
    authority = CertificateAuthority.create("test", now - timedelta(days=1), SystemEntropy())
    credential = authority.issue_client(
        name, ("system:nodes",), lifetime + timedelta(hours=1), now - timedelta(hours=1)
    )
    path = directory / "kubelet-client-current.pem"
    path.write_bytes(credential.certificate.pem)
    return path


def join(directory: Path, *arguments: str) -> Result:
    files = ["--key", str(directory / "kubelet-client.key.tmp"), "--state", str(directory / "identity")]
    trust = ["--trust", str(directory / "trust.json"), "--token", str(directory / "token")]
    return CliRunner().invoke(cli, ["agent", "join", *files, *trust, "--unless-joined", *arguments])


def test_a_certificate_that_counts_is_enough(tmp_path: Path) -> None:
    place(tmp_path, timedelta(minutes=40))
    result = join(tmp_path)
    assert result.exit_code == 0, result.output
    assert f"node {NODE} has a certificate that counts" in result.output
    assert not (tmp_path / "kubelet-client.key.tmp").exists()


def test_a_node_whose_unit_lacks_its_name_is_asked_about_again(tmp_path: Path) -> None:
    place(tmp_path, timedelta(minutes=40))
    environment = tmp_path / "node.env"
    missing = join(tmp_path, "--kubelet-env", str(environment))
    assert missing.exit_code != 0, "it would ask the broker, and this machine was told none"
    assert "broker" in missing.output
    environment.write_text(f"KUBELET_NODE_NAME={NODE}\n")
    assert join(tmp_path, "--kubelet-env", str(environment)).exit_code == 0


@pytest.mark.parametrize("minutes", [-5, 3])
def test_one_that_ended_or_ends_soon_is_none(tmp_path: Path, minutes: int) -> None:
    """A machine that was off for longer than its certificate lives could never come back otherwise."""
    path = place(tmp_path, timedelta(minutes=minutes))
    assert joined_node(path, datetime.now(UTC)) == ""
    assert "broker" in join(tmp_path).output


def test_neither_is_no_file_or_a_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "kubelet-client-current.pem"
    assert joined_node(path, datetime.now(UTC)) == ""
    path.write_text("x")
    assert joined_node(path, datetime.now(UTC)) == ""
