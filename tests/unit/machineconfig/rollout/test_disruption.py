"""What a machine does after a change: defaults, user policies, longest match, drain."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.base.table import TABLE
from fastness.machineconfig.rollout.diff import compare
from fastness.machineconfig.rollout.disruption import (
    BASE_FILES,
    BASE_UNITS,
    DEFAULT_FILES,
    DEFAULTS,
    REBOOT,
    Act,
    Action,
    Decision,
    decide,
    policies_from,
    policies_of,
    policies_status,
)
from tests.unit.machineconfig.build import file, ignition

CRIO = Action(Act.RELOAD, "crio.service")
REGISTRIES = "/etc/containers/registries.conf"
USER_CA = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt"
GPG = "/etc/machine-config-daemon/no-reboot/containers-gpg.pub"


def decision(*paths: str, user: dict[str, Any] | None = None, **spec: Any) -> Decision:
    new = {"config": ignition(*(file(path, "new") for path in paths)), **spec}
    return decide(compare({"config": ignition()}, new), policies_from(user))


def strings(decision: Decision) -> list[str]:
    return [str(action) for action in decision.actions]


DEFAULT_TABLE = [
    ("/etc/fastness/files-of-others.d/a.json", ["None"], False),
    ("/var/lib/kubelet/config.json", ["None"], False),
    (GPG, ["Reload crio.service"], False),
    ("/etc/containers/policy.json", ["Reload crio.service"], False),
    ("/etc/containers/registries.d/a.yaml", ["Reload crio.service"], False),
    ("/etc/crio/policies/a.json", ["Reload crio.service"], False),
    ("/etc/nmstate/openshift/a.yml", ["None"], False),
    (USER_CA, ["Restart coreos-update-ca-trust.service", "Restart crio.service"], False),
    ("/etc/kubernetes/credential-providers/a.yaml", ["Restart kubelet.service"], False),
    (
        "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf",
        ["DaemonReload", "Restart kubelet.service"],
        False,
    ),
    ("/etc/iri-registry/a", ["Restart iri-registry.service"], False),
    ("/usr/local/bin/load-registry-image.sh", ["Restart iri-registry.service"], False),
    ("/etc/pki/ca-trust/source/anchors/iri-root-ca.crt", ["Restart coreos-update-ca-trust.service"], False),
    (REGISTRIES, ["Special"], True),
    ("/etc/containerd/certs.d/quay.example.com/hosts.toml", ["None"], False),
    ("/etc/containers/registries.conf.d/01-image-searchRegistries.conf", ["Reboot"], True),
    ("/etc/crio/crio.conf.d/01-ctrcfg-logLevel", ["Reboot"], True),
    ("/etc/containers/storage.conf", ["Reboot"], True),
    ("/etc/chrony.conf", ["Reboot"], True),
    ("/etc/containers/registries.d.bak", ["Reboot"], True),
    ("/etc/crio/policies2/a", ["Reboot"], True),
]


@pytest.mark.parametrize(("path", "actions", "drain"), DEFAULT_TABLE)
def test_the_default_policies(path: str, actions: list[str], drain: bool) -> None:
    outcome = decision(path)
    assert (strings(outcome), outcome.drain) == (actions, drain)


def test_the_table_above_covers_every_default_that_other_operators_have_too() -> None:
    covered = {path for path, _, _ in DEFAULT_TABLE}
    others = DEFAULT_FILES.keys() - BASE_FILES.keys()
    assert all(any(path == place or place.startswith(f"{path}/") for place in covered) for path in others)


# What of the base reboots, because only a boot lets everything see it: a change of them is rare, and never silent.
REBOOTS = {
    "/etc/kubernetes/kubelet.conf", "/etc/node-sizing-enabled.env", "/etc/crio/crio.conf.d/00-default",
    "/etc/containers/storage.conf", "/etc/mco/proxy.env", "/etc/kubernetes/cloud.conf", "/etc/kubernetes/apiserver-url.env",
    "/etc/docker/certs.d/.create", "crio.service", "rpm-ostreed.service", "zincati.service", "docker.socket",
}  # fmt: skip


def test_a_changed_row_of_the_base_reboots_only_where_that_is_meant() -> None:
    rows = {row.place for rows in TABLE.values() for row in rows}
    files = {place for place in rows if place.startswith("/")}
    units = {place.partition("/")[0] for place in rows - files}
    reboots = {path for path in files if DEFAULTS.for_file(path) == REBOOT}
    assert reboots | {unit for unit in units if DEFAULTS.for_unit(unit) == REBOOT} == REBOOTS


def test_policies_of_the_base_are_about_the_base() -> None:
    places = {row.place for rows in TABLE.values() for row in rows}
    units = {place.partition("/")[0] for place in places if not place.startswith("/")}
    assert BASE_UNITS.keys() <= units
    # The authority of kubelets' clients left the base: machines that have it by their config must not reboot for that.
    beside = {"/etc/containerd/certs.d", names.KUBELET_CA}
    assert {path for path in BASE_FILES if path not in places} == beside


@pytest.mark.parametrize(
    ("path", "actions"),
    [
        ("/etc/kubernetes/kubelet-ca.crt", ["None"]),
        ("/etc/sysctl.d/arp.conf", ["Restart systemd-sysctl.service"]),
        ("/etc/sysctl.d/99-mine.conf", ["Reboot"]),
        ("/etc/systemd/system/kubelet.service.d/20-logging.conf", ["DaemonReload", "Restart kubelet.service"]),
        ("/etc/containerd/config.toml", ["Restart containerd.service"]),
        ("/etc/containerd/certs.d/registry.example/hosts.toml", ["None"]),
        ("/usr/local/bin/mco-hostname", ["None"]),
    ],
)
def test_what_an_upgrade_changes_takes_effect_by_the_least_that_does(path: str, actions: list[str]) -> None:
    assert strings(decision(path)) == actions


def test_a_changed_unit_of_the_kubelet_restarts_it_and_moves_no_pod() -> None:
    def unit(text: str) -> dict[str, Any]:
        return {"config": ignition(units=[{"name": "kubelet.service", "contents": text}])}

    outcome = decide(compare(unit("[Service]\n"), unit("[Service]\nNice=1\n")))
    assert (strings(outcome), outcome.drain) == (["DaemonReload", "Restart kubelet.service"], False)


def test_no_change_needs_nothing() -> None:
    outcome = decide(compare({"config": ignition(file("/a"))}, {"config": ignition(file("/a"))}))
    assert (strings(outcome), outcome.drain, outcome.headline) == (["None"], False, "nothing")


@pytest.mark.parametrize(
    "spec",
    [
        {"osImageURL": "x@sha256:1"},
        {"kernelArguments": ["a"]},
        {"kernelType": "realtime"},
        {"fips": True},
        {"extensions": ["usbguard"]},
    ],
)
def test_what_takes_effect_at_boot_reboots_whatever_policies_say(spec: dict[str, Any]) -> None:
    everything = {"files": [{"path": "/", "actions": [{"type": "None"}]}]}
    outcome = decision("/etc/containers/policy.json", user=everything, **spec)
    assert outcome.reboot
    assert outcome.drain


def test_neutral_fields_are_no_change() -> None:
    assert not compare({}, {"kernelType": "default", "kernelArguments": [], "extensions": None, "fips": False})
    assert not compare({"kernelType": ""}, {"kernelType": "default", "osImageURL": ""})


def test_the_longest_path_wins_and_the_root_matches_everything() -> None:
    user = {
        "files": [
            {"path": "/", "actions": [{"type": "DaemonReload"}]},
            {"path": "/etc", "actions": [{"type": "None"}]},
            {"path": "/etc/app", "actions": [{"type": "Restart", "restart": {"serviceName": "app.service"}}]},
            {"path": "/etc/app/quiet.conf", "actions": [{"type": "None"}]},
        ]
    }
    assert strings(decision("/etc/app/a.conf", user=user)) == ["Restart app.service"]
    assert strings(decision("/etc/app/quiet.conf", user=user)) == ["None"]
    assert strings(decision("/etc/other", user=user)) == ["None"]
    assert strings(decision("/var/x", user=user)) == ["DaemonReload"]


def test_a_user_policy_replaces_the_default_of_the_same_path() -> None:
    user = {"files": [{"path": "/etc/containers/policy.json", "actions": [{"type": "Drain"}]}]}
    outcome = decision("/etc/containers/policy.json", user=user)
    assert (strings(outcome), outcome.drain, outcome.headline) == (["Drain"], True, "drain")


def test_actions_add_up_in_order_once_each_and_none_goes_when_there_is_more() -> None:
    outcome = decision("/etc/containers/policy.json", GPG, "/var/lib/kubelet/config.json", USER_CA)
    assert strings(outcome) == ["Restart coreos-update-ca-trust.service", "Restart crio.service"], "no reload before it"
    assert outcome.headline == "restart"
    other = {"files": [{"path": "/etc/x", "actions": [{"type": "Reload", "reload": {"serviceName": "x.service"}}]}]}
    expected = ["Restart coreos-update-ca-trust.service", "Restart crio.service", "Reload x.service"]
    assert strings(decision(USER_CA, "/etc/x", user=other)) == expected, "another service is reloaded all the same"


def test_one_reboot_makes_the_rest_pointless() -> None:
    assert decision("/etc/containers/policy.json", "/etc/x").actions == REBOOT


def test_a_unit_needs_exactly_its_policy() -> None:
    units = [{"name": "a.service", "enabled": True}]
    change = compare({}, {"config": ignition(units=units)})
    assert decide(change).reboot
    user = {"units": [{"name": "a.service", "actions": [{"type": "DaemonReload"}]}]}
    assert strings(decide(change, policies_from(user))) == ["DaemonReload"]
    removed = compare({"config": ignition(units=units)}, {})
    assert strings(decide(removed, policies_from(user))) == ["DaemonReload"]


def test_keys_need_nothing_unless_the_user_says_otherwise() -> None:
    change = compare({}, {"config": ignition(users=[{"name": "core", "sshAuthorizedKeys": ["a"]}])})
    assert strings(decide(change)) == ["None"]
    assert strings(decide(change, policies_from({"sshkey": {"actions": [{"type": "Drain"}]}}))) == ["Drain"]


def test_the_force_file_reboots() -> None:
    assert decide(compare({}, {}), force=True).reboot


def test_every_cause_names_its_change() -> None:
    outcome = decision("/etc/chrony.conf", "/etc/containers/policy.json")
    assert [(cause.change.path, str(cause.actions[0])) for cause in outcome.causes] == [
        ("/etc/chrony.conf", "Reboot"),
        ("/etc/containers/policy.json", "Reload crio.service"),
    ]


def test_the_status_holds_defaults_and_user_policies_and_reads_back_the_same() -> None:
    user = {
        "files": [{"path": "/etc/x", "actions": [{"type": "Reload", "reload": {"serviceName": "x.service"}}]}],
        "units": [{"name": "y.service", "actions": [{"type": "Reboot"}]}],
        "sshkey": {"actions": [{"type": "Drain"}]},
    }
    merged = policies_status(user)
    status = {"nodeDisruptionPolicyStatus": {"clusterPolicies": merged}}
    assert (
        policies_of({"status": status}) == policies_from(user) == policies_of({"spec": {"nodeDisruptionPolicy": user}})
    )
    assert {entry["path"] for entry in merged["files"]} == {*DEFAULT_FILES, "/etc/x"}
    assert policies_of(None) == DEFAULTS


def test_an_action_that_nobody_knows_is_a_reboot() -> None:
    user = {"files": [{"path": "/etc/x", "actions": [{"type": "Teleport"}]}, {"path": "/etc/y", "actions": []}]}
    assert decision("/etc/x", user=user).reboot
    assert decision("/etc/y", user=user).reboot


def registries(old: str, new: str) -> Decision:
    return decide(
        compare({"config": ignition(file(REGISTRIES, old))}, {"config": ignition(file(REGISTRIES, new))}), DEFAULTS
    )


def test_a_safe_change_of_registries_needs_no_drain() -> None:
    mirror = '[[registry]]\nlocation = "a"\n[[registry.mirror]]\nlocation = "m"\npull-from-mirror = "digest-only"\n'
    assert not registries("", mirror).drain
    assert registries(mirror, "").drain
    assert strings(registries("", mirror)) == ["Special"]
