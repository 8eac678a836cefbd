"""What a machine must do after a change: the least that its policies allow.

* An operating system image, kernel arguments, kernel type, FIPS or extensions need a reboot, whatever the policies say.
* Otherwise every changed file asks the policy with the longest path that is the file or a directory above it, every changed unit
  the policy of its name, changed keys the policy for keys. No policy means a reboot.
* One reboot makes everything else pointless, a restart the reload of the same service. An action that several changes ask for
  happens once, where it is asked for first.
* `Special` stands for registries.conf: the runtime is reloaded, and pods are moved away first unless the change is safe.

Policies come from `MachineConfiguration.status`, which `policies_status` makes of the defaults and the user's spec. `plan` and
the agent ask the same `decide`; `causes` says which change wants what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.rollout.diff import ConfigChange, Difference, Part
from fastness.machineconfig.rollout.registries import is_safe
from fastness.protocol.files_of_others import DIRECTORY as OTHERS

Object = Mapping[str, Any]
CRIO: Final = "crio.service"
KUBELET: Final = "kubelet.service"
CONTAINERD: Final = "containerd.service"
_CA_TRUST: Final = "coreos-update-ca-trust.service"
_IRI: Final = "iri-registry.service"
_ANCHORS: Final = "/etc/pki/ca-trust/source/anchors"


class Act(StrEnum):
    """Types of actions, by how much they disturb."""

    NONE = "None"
    DAEMON_RELOAD = "DaemonReload"
    RELOAD = "Reload"
    SPECIAL = "Special"
    RESTART = "Restart"
    DRAIN = "Drain"
    REBOOT = "Reboot"

    @property
    def weight(self) -> int:
        """A higher number disturbs more."""
        return list(Act).index(self)


class Action(NamedTuple):
    """One action; reload and restart name a service."""

    type: Act
    service: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.service}".strip()

    def to_json(self) -> JsonObject:
        """In the form of the API."""
        value: JsonObject = {"type": str(self.type)}
        if self.service:
            value[str(self.type).lower()] = {"serviceName": self.service}
        return value


Actions = tuple[Action, ...]
NOTHING: Final[Actions] = (Action(Act.NONE),)
REBOOT: Final[Actions] = (Action(Act.REBOOT),)


def _reload(service: str) -> Action:
    return Action(Act.RELOAD, service)


def _restart(service: str) -> Action:
    return Action(Act.RESTART, service)


_DAEMON_RELOAD: Final = Action(Act.DAEMON_RELOAD)

# What an upgrade of ours may change without a reboot: what takes effect by less, what is read at boot, or once in a machine's
# life.
# Everything else of the base reboots, as a change of the kubelet's settings or of CRI-O's always did.
_AT_BOOT: Final[Actions] = (_DAEMON_RELOAD,)
_SYSCTL: Final[Actions] = (_restart("systemd-sysctl.service"),)
_MODULES: Final[Actions] = (_restart("systemd-modules-load.service"),)
BASE_FILES: Final[Mapping[str, Actions]] = {
    names.KUBELET_CA: NOTHING,  # the kubelet reads it again by itself; configs of earlier versions have it
    "/etc/kubernetes/kubeconfig": NOTHING,
    "/etc/kubernetes/kubelet-plugins/volume/exec/.dummy": NOTHING,
    names.BOOT_LOADER_FILE: NOTHING,  # read when an image is deployed
    "/usr/local/bin/mco-hostname": NOTHING,
    "/usr/local/bin/nodeip-configuration": NOTHING,
    "/usr/local/bin/fastness-ca-trust": NOTHING,
    "/usr/local/sbin/dynamic-system-reserved-calc.sh": NOTHING,
    "/etc/fastness/user-ca-bundle.crt": (_restart("fastness-ca-trust.service"),),
    **{f"/etc/sysctl.d/{name}.conf": _SYSCTL
       for name in ("inotify", "vm-max-map", "gc-thresh", "arp", "enable-userfaultfd", "90-kubelet")},
    **{f"/etc/modules-load.d/{name}.conf": _MODULES for name in ("iptables", "k8s")},
    **{f"/etc/systemd/system.conf.d/{name}.conf": _AT_BOOT
       for name in ("kubelet-cgroups", "10-default-timeout-stop", "10-default-env-godebug")},
    "/etc/systemd/system/kubelet.service.d/20-logging.conf": (_DAEMON_RELOAD, _restart(KUBELET)),
    # Its containers go on while it restarts; what it pulls from is read at each pull.
    "/etc/containerd/config.toml": (_restart(CONTAINERD),),
    "/etc/containerd/certs.d": NOTHING,
}  # fmt: skip
BASE_UNITS: Final[Mapping[str, Actions]] = {
    KUBELET: (_DAEMON_RELOAD, _restart(KUBELET)),
    CONTAINERD: (_DAEMON_RELOAD, _restart(CONTAINERD)),
    "fastness-attest.service": (_DAEMON_RELOAD, _restart("fastness-attest.service")),
    **dict.fromkeys(
        (
            "chrony-wait.service", "fastness-agent.service", "fastness-ca-trust.service", "fastness-firstboot.service",
            "fastness-identity.service", "fastness-revert.service", "firstboot-osupdate.target", "kubelet-auto-node-size.service",
            "kubelet-cleanup.service", "kubelet-dependencies.target", "node-valid-hostname.service",
            "nodeip-configuration.service",
        ),
        _AT_BOOT,
    ),
}  # fmt: skip
DEFAULT_FILES: Final[Mapping[str, Actions]] = {
    OTHERS: NOTHING,  # the agent reads it; files of other operators are not touched
    "/var/lib/kubelet/config.json": NOTHING,
    "/etc/machine-config-daemon/no-reboot/containers-gpg.pub": (_reload(CRIO),),
    "/etc/containers/policy.json": (_reload(CRIO),),
    names.REGISTRIES_CONF: (Action(Act.SPECIAL),),
    "/etc/containers/registries.d": (_reload(CRIO),),
    "/etc/crio/policies": (_reload(CRIO),),
    "/etc/containerd/certs.d": NOTHING,  # read for every pull
    "/etc/nmstate/openshift": NOTHING,
    f"{_ANCHORS}/openshift-config-user-ca-bundle.crt": (_restart(_CA_TRUST), _restart(CRIO)),
    "/etc/kubernetes/credential-providers": (_restart(KUBELET),),
    "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf": (
        _DAEMON_RELOAD,
        _restart(KUBELET),
    ),
    "/etc/iri-registry": (_restart(_IRI),),
    "/usr/local/bin/load-registry-image.sh": (_restart(_IRI),),
    f"{_ANCHORS}/iri-root-ca.crt": (_restart(_CA_TRUST),),
    **BASE_FILES,
}
DEFAULT_UNITS: Final[Mapping[str, Actions]] = {_IRI: (_DAEMON_RELOAD, _restart(_IRI)), **BASE_UNITS}


@dataclass(frozen=True, slots=True)
class Policies:
    """Which change needs which actions."""

    files: Mapping[str, Actions] = field(default_factory=lambda: dict(DEFAULT_FILES))
    units: Mapping[str, Actions] = field(default_factory=lambda: dict(DEFAULT_UNITS))
    sshkey: Actions = NOTHING

    def for_file(self, path: str) -> Actions:
        """The policy of the longest path that is the file or a directory above it; a reboot without one."""
        while path:
            actions = self.files.get(path)
            if actions is not None:
                return actions
            # By whole parts of the path: a policy for /etc/foo says nothing about /etc/foobar.
            path = path.rpartition("/")[0]
        # Without a policy a reboot, because nobody has said that less is enough: what reads the file at start is not known here.
        return self.files.get("/", REBOOT)

    def for_unit(self, name: str) -> Actions:
        """The policy of exactly that unit; a reboot without one."""
        # No prefixes here: a unit belongs to nobody above it, and a drop-in can change anything about it.
        return self.units.get(name, REBOOT)


DEFAULTS: Final = Policies()


class Cause(NamedTuple):
    """Which change asks for which actions."""

    change: ConfigChange
    actions: Actions


@dataclass(frozen=True, slots=True)
class Decision:
    """What a machine does about a difference, and why."""

    actions: Actions = NOTHING
    drain: bool = False
    causes: tuple[Cause, ...] = ()

    @property
    def reboot(self) -> bool:
        """Whether the machine goes down."""
        return self.actions == REBOOT

    @property
    def disturbs(self) -> bool:
        """Whether anything happens besides writing files."""
        return self.actions != NOTHING

    @property
    def headline(self) -> str:
        """The heaviest thing that happens, as one word: nothing, reload, restart, drain, reboot."""
        if self.reboot:
            return "reboot"
        if self.drain:
            return "drain"
        heaviest = max((action.type for action in self.actions), key=lambda act: act.weight)
        return {Act.NONE: "nothing", Act.RESTART: "restart"}.get(heaviest, "reload")


def policies_from(user: Object | None) -> Policies:
    """The defaults with a user's `nodeDisruptionPolicy`: same path or name replaces, others are added."""
    spec = user or {}
    sshkey = spec.get("sshkey")
    return Policies(
        files={**DEFAULT_FILES, **{str(entry["path"]): _actions(entry) for entry in spec.get("files") or ()}},
        units={**DEFAULT_UNITS, **{str(entry["name"]): _actions(entry) for entry in spec.get("units") or ()}},
        sshkey=_actions(sshkey) if sshkey else NOTHING,
    )


def policies_of(configuration: Object | None) -> Policies:
    """The policies that hold: those of the status of the MachineConfiguration, or what its spec leads to."""
    status = ((configuration or {}).get("status") or {}).get("nodeDisruptionPolicyStatus") or {}
    merged = status.get("clusterPolicies")
    if not merged:
        return policies_from(((configuration or {}).get("spec") or {}).get("nodeDisruptionPolicy"))
    return Policies(
        files={str(entry["path"]): _actions(entry) for entry in merged.get("files") or ()},
        units={str(entry["name"]): _actions(entry) for entry in merged.get("units") or ()},
        sshkey=_actions(merged["sshkey"]) if merged.get("sshkey") else NOTHING,
    )


def policies_status(user: Object | None) -> JsonObject:
    """What `status.nodeDisruptionPolicyStatus.clusterPolicies` says for a user's policies."""
    policies = policies_from(user)
    return {
        "files": [{"path": path, "actions": _json(actions)} for path, actions in policies.files.items()],
        "units": [{"name": name, "actions": _json(actions)} for name, actions in policies.units.items()],
        "sshkey": {"actions": _json(policies.sshkey)},
    }


def decide(difference: Difference, policies: Policies = DEFAULTS, *, force: bool = False) -> Decision:
    """What a machine does about a difference; `force` is the force file."""
    causes = tuple(_causes(difference, policies))
    # The force file is for a machine whose state nobody trusts any more; only a boot reads everything anew.
    actions = REBOOT if force else _folded(cause.actions for cause in causes)
    return Decision(actions, _needs_drain(actions, causes), causes)


def _causes(difference: Difference, policies: Policies) -> Iterable[Cause]:
    for change in difference.changes:
        match change.part:
            case Part.FILE:
                yield Cause(change, policies.for_file(change.path))
            case Part.UNIT:
                yield Cause(change, policies.for_unit(change.path))
            case Part.USER:
                yield Cause(change, policies.sshkey)
            case part if part.needs_reboot:
                yield Cause(change, REBOOT)
            case _:
                # Links, directories and the like: reconcile refuses what matters, the rest is not applied.
                yield Cause(change, NOTHING)


def _folded(each: Iterable[Actions]) -> Actions:
    actions = list(dict.fromkeys(action for group in each for action in group))
    if Action(Act.REBOOT) in actions:
        return REBOOT
    restarted = {action.service for action in actions if action.type is Act.RESTART}
    # Who starts anew reads everything anew.
    left = [action for action in actions if action.type is not Act.RELOAD or action.service not in restarted]
    return tuple(action for action in left if action.type is not Act.NONE) or NOTHING


def _needs_drain(actions: Actions, causes: Sequence[Cause]) -> bool:
    if any(action.type in (Act.REBOOT, Act.DRAIN) for action in actions):
        return True
    special = [cause.change for cause in causes if any(action.type is Act.SPECIAL for action in cause.actions)]
    return any(not _safe_registries(change) for change in special)


def _safe_registries(change: ConfigChange) -> bool:
    if change.path != names.REGISTRIES_CONF:
        return False
    old, new = file_bytes(change.old), file_bytes(change.new)
    # A file that came or went, or whose content is fetched elsewhere, cannot be compared; then pods are moved away.
    return old is not None and new is not None and is_safe(old, new)


def _actions(entry: Object) -> Actions:
    # An empty list is a policy that somebody did not finish: it is no leave to do nothing.
    return tuple(_action(action) for action in entry.get("actions") or ()) or REBOOT


def _action(entry: Object) -> Action:
    kind = entry.get("type")
    # A word of a newer version, or a typing mistake. A reboot always suffices; less might leave a machine on the old file while
    # it reports the new one.
    if kind not in set(Act):
        return Action(Act.REBOOT)
    detail = entry.get(str(kind).lower())
    return Action(Act(kind), str(detail.get("serviceName", "")) if isinstance(detail, Mapping) else "")


def _json(actions: Actions) -> list[JsonObject]:
    return [action.to_json() for action in actions]
