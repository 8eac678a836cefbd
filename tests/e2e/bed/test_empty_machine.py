"""From an empty machine to a node, on real parts, and what happens to it then: word for word what the page says, and more.

The machine starts with an image, a TPM and user-data. It has a systemd of its own, so its units are the ones of `deploy/systemd`
and of the rendered configuration; Ignition is Debian's; kubelet, containerd and the API server are real, and so are reboots. All
tests are about the one machine of the page, in the order in which its life goes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial

import pytest

from fastness.attestation.machine.proof_age import NO_MACHINE, TAINT_KEY
from fastness.kinds.trusted_execution.machine import NOTE
from fastness.sim.tee.images import changed, default_image
from tests.bed import Bed
from tests.bed.machine import Machine
from tests.e2e.bed.walking import CHANGES, PAGE, Walk, walking
from tests.e2e.cli.serving import eventually
from tests.e2e.docs.transcript import Step
from tests.swtpm import Maker

AGENT = "/usr/lib/fastness/agent/bin/fastness-agent"
pytestmark = [pytest.mark.processes, pytest.mark.long("a machine boots four times, each time with drains and proofs")]


@pytest.fixture(scope="module")
def walk(bed: Bed, tpm_maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """The page up to its node, which runs a pod."""
    with tpm_maker.tpm("one") as tpm, walking(bed, tpm_maker, tpm, tmp_path_factory.mktemp("walk")) as walk:
        yield walk


@pytest.mark.row("000-45")
def test_its_first_boot_is_on_the_record_as_enrolled_then_attested_then_released_to(walk: Walk) -> None:
    entries = json.loads("\n".join(walk.shell.run(Step("fastness audit show --last 1000 -o json"))))
    kinds = [entry["what"] for entry in entries if entry["what"] in ("enrol", "attested", "release")]
    assert kinds[:3] == ["enrol", "attested", "release"]


@pytest.mark.row("000-41")
def test_what_was_rendered_is_what_runs(walk: Walk) -> None:
    machine = walk.machine
    running = machine.run(
        "sh", "-c", "tr '\\0' ' ' < /proc/$(systemctl show -P MainPID kubelet.service)/cmdline"
    ).stdout
    assert running.startswith(
        "/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf --config-dir=/etc/openshift/kubelet.conf.d"
    )
    assert f"--hostname-override={walk.node} " in running
    assert f"--node-ip={machine.address} " in running, "nodeip-configuration.service said so"
    assert "rotateCertificates: false" in machine.file("/etc/kubernetes/kubelet.conf").read_text()
    assert machine.file("/proc/sys/vm/overcommit_memory").read_text().strip() == "1", (
        "systemd-sysctl read what was rendered"
    )
    assert (
        machine.ctl("is-active", "containerd.service", "kubelet.service", "fastness-agent.service")
        == "active\nactive\nactive"
    )
    assert machine.ctl("--failed", "--no-legend") == ""


def test_what_runs_on_after_a_first_boot_is_enabled_once_and_starts_again_when_it_ends(walk: Walk) -> None:
    machine = walk.machine
    for unit in (
        "fastness-identity.service",
        "fastness-attest.service",
        "fastness-agent.service",
        "fastness-firstboot.service",
    ):
        assert machine.ctl("is-enabled", unit) == "enabled", unit
    assert machine.ctl("show", "-P", "Result", "fastness-firstboot.service") == "success"
    assert machine.ctl("show", "-P", "ConditionResult", "fastness-firstboot.service") == "yes"
    assert machine.ctl("show", "-P", "ConditionResult", "fastness-revert.service") == "no", (
        "there is nothing to go back from"
    )
    assert "bootstrap token of node" in machine.journal("fastness-join.service")
    before = {unit: main_process(machine, unit) for unit in ("fastness-agent.service", "fastness-attest.service")}
    assert machine.run("systemctl", "kill", "--signal=KILL", *before).returncode == 0
    for unit, process in before.items():
        eventually(partial(is_another, machine, unit, process), f"{unit} again")


def main_process(machine: Machine, unit: str) -> str:
    """The number of a service's process; 0 while it has none."""
    return machine.ctl("show", "-P", "MainPID", unit)


def is_another(machine: Machine, unit: str, before: str) -> bool:
    """Whether a service has a process, and another one than before."""
    return main_process(machine, unit) not in ("0", before)


def test_a_second_agent_beside_the_first_ends_and_leaves_it_alone(walk: Walk) -> None:
    machine = walk.machine
    lock = machine.file("/var/lib/fastness/agent.lock")
    # Not what the journal has: an agent that was killed before said the same.
    eventually(lambda: lock.read_text().strip() == main_process(machine, "fastness-agent.service"), "the agent at work")
    words = ["--identity", "/var/lib/fastness/identity", "--kubeconfig", "/var/lib/kubelet/kubeconfig"]
    second = machine.run(AGENT, "run", *words)
    assert second.returncode != 0, second.stdout
    assert "is the agent of this machine already" in second.stderr
    assert machine.ctl("is-active", "fastness-agent.service") == "active"


def test_another_version_of_the_agent_takes_over_after_a_restart_and_the_node_stays_where_it_is(walk: Walk) -> None:
    machine = walk.machine
    update = f"mv {AGENT} {AGENT}.before && cp {AGENT}.before {AGENT} && sed -i '2i echo another version >&2' {AGENT}"
    assert machine.run("sh", "-c", update).returncode == 0
    assert machine.run("systemctl", "restart", "fastness-agent.service").returncode == 0
    eventually(
        lambda: "another version" in machine.journal("fastness-agent.service").split("agent of node")[-2],
        "the new one at work",
    )
    assert machine.run("mv", f"{AGENT}.before", AGENT).returncode == 0
    assert machine.run("systemctl", "restart", "fastness-agent.service").returncode == 0
    assert note(walk, "machineconfiguration\\.openshift\\.io/state") == "Done"


def test_the_way_back_from_an_image_is_completed_once(walk: Walk) -> None:
    machine = walk.machine
    current, revert = "/etc/machine-config-daemon/currentconfig", "/etc/mco/machineconfig-revert.json"
    assert machine.run("cp", current, revert).returncode == 0
    done = machine.run("systemctl", "start", "fastness-revert.service")
    assert done.returncode == 0, done.stderr + machine.journal("fastness-revert.service")
    assert "this machine is what its configuration asks for" in machine.journal("fastness-revert.service")
    assert not machine.file(revert).exists(), "the next boot finds nothing to do"


def test_day_two_as_the_page_has_it(walk: Walk) -> None:
    boots = walk.machine.boots
    walk.read(PAGE.read_text().split(CHANGES)[1])
    assert walk.machine.boots == boots + 2, "one for the setting of the kubelet, one for its end"
    assert not walk.machine.file("/etc/greeting").exists(), "what a MachineConfig brought goes with it"
    join = walk.machine.journal("fastness-join.service")
    assert "has a certificate that counts" in join, "a boot asks for no certificate where it has one"


def test_a_machine_that_measures_one_word_more_gets_nothing(walk: Walk, tpm_maker: Maker) -> None:
    image = default_image()
    before = walk.kubectl.ok("get", "csr", "-o", "name")
    with tpm_maker.tpm("other") as tpm:
        machine = walk.build(tpm, changed(image, command_line=f"{image.command_line} debug"))
        machine.switch_on(walk.user_data())
        eventually(lambda: "Ignition has nothing" in machine.console, "the refusal")
        machine.switch_off()
    assert "this machine gets no configuration (value-differs)" in machine.console
    assert "fastness attest explain machine-" in machine.console
    assert walk.kubectl.ok("get", "csr", "-o", "name") == before, "it did not come so far as to ask for a certificate"


def test_a_node_that_somebody_made_by_hand_is_tainted(walk: Walk) -> None:
    label = {"node-role.kubernetes.io/worker": ""}
    walk.kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand", "labels": label}})
    try:
        walk.kubectl.wait("node/by-hand", f"jsonpath={{.spec.taints[?(@.key=='{TAINT_KEY}')].effect}}=NoSchedule")
        note = NOTE.replace(".", "\\.")
        walk.kubectl.wait("node/by-hand", f"jsonpath={{.metadata.annotations.{note}}}={NO_MACHINE}")
    finally:
        walk.kubectl.ok("delete", "node", "by-hand")


BROKEN = {
    "apiVersion": "machineconfiguration.openshift.io/v1",
    "kind": "MachineConfig",
    "metadata": {"name": "99-zz-broken", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
    "spec": {
        "config": {
            "ignition": {"version": "3.4.0"},
            "storage": {
                "files": [
                    {
                        "path": "/etc/kubernetes/kubelet.conf", "mode": 420, "overwrite": True,
                        "contents": {"source": "data:,apiVersion%3A%20kubelet.config.k8s.io%2Fv1beta1%0Akind%3A%20Nonsense%0A"},
                    }
                ]
            },
        }
    },
}  # fmt: skip
PATIENT = {
    "apiVersion": "fastness.dev/v1alpha1", "kind": "RolloutPolicy", "metadata": {"name": "careful"},
    "spec": {"poolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}}, "tryFor": "60s"},
}  # fmt: skip


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("FASTNESS_SOAK"), reason="two more boots, and the time that a machine may try")
def test_a_machine_whose_kubelet_a_change_breaks_is_taken_back_by_its_policy(walk: Walk) -> None:
    machine, boots = walk.machine, walk.machine.boots
    walk.kubectl.apply(PATIENT)
    walk.kubectl.apply(BROKEN)
    try:
        reason = "machineconfiguration\\.openshift\\.io/reason"
        eventually(lambda: "kubelet.service does not run with" in note(walk, reason), "the machine says what is wrong")
        eventually(lambda: machine.boots == boots + 2, "the way back")
        walk.kubectl.wait(f"node/{walk.node}", "condition=Ready")
        eventually(
            lambda: "Nonsense" not in machine.file("/etc/kubernetes/kubelet.conf").read_text(), "the file of before"
        )
    finally:
        walk.kubectl.ok("delete", "machineconfig", "99-zz-broken")
        walk.kubectl.ok("delete", "rolloutpolicy", "careful")
    walk.kubectl.wait("mcp/worker", "condition=Updated")


def note(walk: Walk, name: str) -> str:
    """What an annotation of the page's node says; dots of its name are escaped."""
    return walk.kubectl.ok("get", "node", walk.node, "-o", f"jsonpath={{.metadata.annotations.{name}}}")
