"""What a machine has beside its config: written whole, finished after a power cut, and never somebody else's."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.trust_writer import TrustWriter
from fastness.agent.host.errors import DriverError, UnitFailure
from fastness.agent.host.states import Absent, File
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.trust.files import CLOUD_CA, INTERNAL_PULL_SECRET, KUBECONFIGS, registry_file
from fastness.machineconfig.trust.kubeconfig import authority_in
from fastness.protocol.node_trust import NodeTrust
from tests.component.agent.directory_machine import make_machine
from tests.unit.machineconfig.build import CERTIFICATE, OTHER_CERTIFICATE
from tests.unit.machineconfig.signers import signer

FIRST = NodeTrust(
    kubelet_ca=CERTIFICATE, cloud_ca=CERTIFICATE, registries={"a.example:5000": CERTIFICATE, "b.example": CERTIFICATE},
    pull_secret='{"auths":{}}',
)  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> DirectoryMachine:
    return make_machine(tmp_path / "w0")


def content(machine: DirectoryMachine, path: str) -> str | None:
    state = machine.host.root.look(path)
    return state.content.decode() if isinstance(state, File) else None


def kubeconfig(bundle: str) -> bytes:
    data = base64.b64encode(bundle.encode()).decode()
    return f"clusters:\n- name: local\n  cluster: {{certificate-authority-data: {data}}}\n".encode()


def install_kubeconfigs(machine: DirectoryMachine, bundle: str = CERTIFICATE) -> None:
    for path in KUBECONFIGS:
        machine.host.root.put(path, File(kubeconfig(bundle), 0o600))


class PowerCut(DriverError):
    """The machine lost its power."""

    code = "power-cut"


def cut_after(machine: DirectoryMachine, puts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let so many files be written, and no more."""
    root, left = machine.host.root, [puts]
    genuine = root.put

    def put(path: str, state: Any, **more: Any) -> None:
        if left[0] == 0:
            raise PowerCut("no power")
        left[0] -= 1
        genuine(path, state, **more)

    monkeypatch.setattr(root, "put", put)


def test_everything_is_written_once_and_a_second_look_writes_nothing(
    machine: DirectoryMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TrustWriter(machine.host)
    assert len(writer.write(FIRST, ())) == 5
    assert content(machine, "/etc/docker/certs.d/a.example:5000/ca.crt") == CERTIFICATE
    secret = machine.host.root.look(INTERNAL_PULL_SECRET)
    assert isinstance(secret, File)
    assert (secret.content, secret.mode) == (b'{"auths":{}}\n', 0o600)
    cut_after(machine, 0, monkeypatch)
    assert writer.write(FIRST, ()) == []
    assert machine.units.calls == [], "the kubelet reads its authority again by itself, the runtime at every pull"


def test_a_mode_that_somebody_narrowed_stays(machine: DirectoryMachine) -> None:
    machine.host.root.put(names.KUBELET_CA, File(b"old", 0o400))
    TrustWriter(machine.host).write(FIRST, ())
    state = machine.host.root.look(names.KUBELET_CA)
    assert isinstance(state, File)
    assert state.mode == 0o400


def test_a_source_that_became_empty_leaves_a_newline_and_one_that_never_was_no_file(machine: DirectoryMachine) -> None:
    writer = TrustWriter(machine.host)
    writer.write(NodeTrust(kubelet_ca=CERTIFICATE, pull_secret="{}"), ())
    assert content(machine, CLOUD_CA) is None
    writer.write(NodeTrust(kubelet_ca=CERTIFICATE), ())
    assert content(machine, INTERNAL_PULL_SECRET) == "\n"
    assert content(machine, CLOUD_CA) is None


def test_a_registry_that_is_spoken_of_no_more_goes_and_what_others_put_there_stays(machine: DirectoryMachine) -> None:
    root = machine.host.root
    root.put("/etc/docker/certs.d/admin.example/ca.crt", File(b"mine"))
    writer = TrustWriter(machine.host)
    writer.write(FIRST, ())
    root.put("/etc/docker/certs.d/b.example/client.key", File(b"mine"))
    changed = writer.write(NodeTrust(kubelet_ca=CERTIFICATE, registries={"c.example": CERTIFICATE}), ())
    assert registry_file("a.example:5000") in changed
    assert root.names("/etc/docker/certs.d") == ["admin.example", "b.example", "c.example"]
    assert root.names("/etc/docker/certs.d/b.example") == ["client.key"]
    assert content(machine, "/etc/docker/certs.d/admin.example/ca.crt") == "mine"


def test_a_port_in_a_name_is_no_reason_to_write_anew(machine: DirectoryMachine) -> None:
    writer = TrustWriter(machine.host)
    writer.write(FIRST, ())
    directory = machine.root / "etc/docker/certs.d/a.example:5000"
    before = directory.stat().st_ino
    writer.write(NodeTrust(kubelet_ca=OTHER_CERTIFICATE, registries=FIRST.registries), ())
    assert directory.stat().st_ino == before


def test_a_path_of_the_config_is_the_config_s(machine: DirectoryMachine) -> None:
    path = registry_file("a.example:5000")
    machine.host.root.put(path, File(b"the config's"))
    changed = TrustWriter(machine.host).write(FIRST, {path})
    assert path not in changed
    assert content(machine, path) == "the config's"
    TrustWriter(machine.host).write(NodeTrust(kubelet_ca=CERTIFICATE), {path})
    assert content(machine, path) == "the config's"


def test_what_somebody_changed_on_the_disk_comes_back(machine: DirectoryMachine) -> None:
    writer = TrustWriter(machine.host)
    writer.write(FIRST, ())
    machine.host.root.put(registry_file("b.example"), File(b"another authority"))
    assert writer.write(FIRST, ()) == [registry_file("b.example")]
    assert content(machine, registry_file("b.example")) == CERTIFICATE


@pytest.mark.parametrize("puts", range(1, 6))
def test_after_a_power_cut_between_two_files_the_next_start_goes_on_without_asking_anybody(
    machine: DirectoryMachine, monkeypatch: pytest.MonkeyPatch, puts: int
) -> None:
    with monkeypatch.context() as patch:
        cut_after(machine, puts, patch)
        with pytest.raises(PowerCut):
            TrustWriter(machine.host).write(FIRST, ())
    writer = TrustWriter(machine.host)
    memory = writer.memory()
    assert memory is not None
    assert memory.pending
    writer.write(memory.trust, ())
    assert content(machine, registry_file("b.example")) == CERTIFICATE
    finished = writer.memory()
    assert finished is not None
    assert not finished.pending


def test_a_cut_before_the_old_directories_went_still_takes_them_away(
    machine: DirectoryMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TrustWriter(machine.host)
    writer.write(FIRST, ())
    later = NodeTrust(kubelet_ca=OTHER_CERTIFICATE)
    with monkeypatch.context() as patch:
        cut_after(machine, 2, patch)
        with pytest.raises(PowerCut):
            writer.write(later, ())
    writer.write(later, ())
    assert isinstance(machine.host.root.look(registry_file("a.example:5000")), Absent)


def test_a_new_authority_of_the_api_server_is_written_while_the_kubelet_is_stopped(machine: DirectoryMachine) -> None:
    install_kubeconfigs(machine)
    TrustWriter(machine.host).write(NodeTrust(kubelet_ca=CERTIFICATE, api_ca=OTHER_CERTIFICATE), ())
    assert [authority_in(content(machine, path) or "") for path in KUBECONFIGS] == [OTHER_CERTIFICATE] * 2
    assert machine.units.calls == [("stop", "kubelet.service"), ("daemon-reload", ""), ("start", "kubelet.service")]
    state = machine.host.root.look(KUBECONFIGS[1])
    assert isinstance(state, File)
    assert state.mode == 0o600


def test_a_kubelet_that_was_stopped_by_an_agent_that_died_is_started(
    machine: DirectoryMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_kubeconfigs(machine)
    trust = NodeTrust(kubelet_ca=CERTIFICATE, api_ca=OTHER_CERTIFICATE)

    def fails(_service: str) -> None:
        raise UnitFailure("no systemd")

    with monkeypatch.context() as patch:
        patch.setattr(machine.units, "start", fails)
        with pytest.raises(UnitFailure):
            TrustWriter(machine.host).write(trust, ())
    machine.units.calls.clear()
    writer = TrustWriter(machine.host)
    writer.resume()
    assert machine.units.calls[-1] == ("start", "kubelet.service")
    writer.write(trust, ())
    machine.units.calls.clear()
    TrustWriter(machine.host).resume()
    assert machine.units.calls == []


def test_signers_of_the_api_server_s_own_hosts_wait_until_somebody_misses_them(machine: DirectoryMachine) -> None:
    install_kubeconfigs(machine)
    both = CERTIFICATE + signer("lb")
    writer = TrustWriter(machine.host)
    writer.write(NodeTrust(kubelet_ca=CERTIFICATE, api_ca=both), ())
    assert authority_in(content(machine, KUBECONFIGS[1]) or "") == both, "whoever starts anew has it"
    assert machine.units.calls == []
    assert writer.start_anew()
    assert machine.units.calls[-1] == ("start", "kubelet.service")
    assert not writer.start_anew(), "once"


def test_without_an_authority_kubeconfigs_stay_as_they_are(machine: DirectoryMachine) -> None:
    install_kubeconfigs(machine)
    TrustWriter(machine.host).write(FIRST, ())
    assert authority_in(content(machine, KUBECONFIGS[0]) or "") == CERTIFICATE
