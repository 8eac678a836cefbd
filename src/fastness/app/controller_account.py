"""The account of the controllers: what their loops declare, and by name whatever Kubernetes can limit by name.

    sources of a loop  ─▶ get, list, watch, where the source looks: the cluster, a namespace, one name
    writes of a loop   ─▶ the verbs of `WRITES`, which has a row for every kind that a loop declares, and no other
    what neither says  ─▶ the rest of this page, each with its reason

* No wildcard and no `escalate`. The one ClusterRole that a loop makes gives what this account has itself; roles that a loop binds
  are named with the verb `bind`.
* At home it fills Secrets that it finds, as doors do, and creates none. Creating cannot be limited by name, and neither can
  changing what has a name that nobody knows before: that is granted in the namespaces where such Secrets are made, and nowhere
  else. In `kube-system` an admission policy keeps its writes to bootstrap tokens.
* Namespaces in which it has rights are made with the account: whoever makes one first administers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from fastness.app.controllers import product_loops
from fastness.app.role_accounts import EVENTS, LOOK, RoleAccount, Rule
from fastness.attestation.live import guard_state as guardstate
from fastness.attestation.live.statuses import Statuses
from fastness.enrolment.live import bootstrap_tokens as bootstrap
from fastness.enrolment.loops import pool_tokens
from fastness.enrolment.loops.join_tokens import BINDING
from fastness.keys import legacy_stubs
from fastness.keys.certificates import secret_name
from fastness.keys.doors import DOORS
from fastness.keys.image_keys import IMAGE_KEYS
from fastness.keys.internal import INTERNAL
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kata import names as kata
from fastness.kinds.machineconfiguration.names import OPERATOR_NAMESPACE, USER_DATA_NAMESPACE
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.leadership import LeaderSettings
from fastness.kube.informers import Informers
from fastness.kube.places import DISKS, POOL_JOINS
from fastness.machineconfig.loops import other_operators as machine_configs
from fastness.machineconfig.loops.machines import other_machine_api as machine_api
from fastness.machineconfig.trust import image_pull
from fastness.machineconfig.trust.node_trust import MERGED
from fastness.machineconfig.trust.sources import MANAGED, OPERATOR
from fastness.protocol.door import DoorRole
from fastness.protocol.node_certificates import SIGNERS
from fastness.record.live import log_key as logkey
from fastness.record.live.door_keys import DOOR_KEYS
from fastness.runtime.clock import SystemEntropy
from fastness.workloads.loops import other_operators as workloads
from fastness.workloads.olm.catalog import MARKETPLACE

_F, _T, _C = "fastness.dev", "trusted-execution-clusters.io", "confidentialcontainers.org"
_M, _O, _NFD = "machineconfiguration.openshift.io", "operators.coreos.com", "nfd.openshift.io"
_API, _METAL, _BOOT = "machine.openshift.io", "metal3.io", "bootstrap.cluster.x-k8s.io"
_RBAC, _KATA, _CONFIG = "rbac.authorization.k8s.io", "kataconfiguration.openshift.io", "config.openshift.io"
STATUS: Final = "status"
MADE: Final = ("create", "patch", "delete")
CHANGED: Final = ("patch", "delete")

SECRETS: Final = (
    DOORS.name, INTERNAL.name, logkey.SECRET, guardstate.NAME, DOOR_KEYS["controllers"].name, *map(secret_name, DoorRole),
    IMAGE_KEYS.name, legacy_stubs.IMPORTED, legacy_stubs.ISSUED, image_pull.NAME,
)  # fmt: skip
"""At home: the authorities, the key of the record, what the guard saw last, the key of its entries, certificates of doors,
the authority of an older installer, and the credentials with which proven nodes pull."""

# What loops do to each kind that they declare; "status" is a patch of that part. Kinds that are limited further are in `LIMITED`.
WRITES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "nodes"): ("patch", "delete", STATUS),
    (_C, "kbsconfigs"): (STATUS,),
    (_CONFIG, "featuregates"): (STATUS,),
    (_CONFIG, "nodes"): (STATUS,),
    (_C, "trusteeconfigs"): (STATUS,),
    (_F, "appraisalpolicies"): (*MADE, STATUS),
    (_F, "auditbatches"): ("create", "delete"),
    (_F, "auditcheckpoints"): ("create", "delete", STATUS),
    (_F, "confidentialclusters"): ("create", "patch", STATUS),
    (_F, "distrusts"): ("create", "patch", STATUS),
    (_F, "evidenceblobs"): ("delete",),
    (_F, "jointickets"): (*MADE, STATUS),
    (_F, "nodeoverlays"): (STATUS,),
    (_F, "referencevaluesets"): (*MADE, STATUS),
    (_F, "rolloutpolicies"): (STATUS,),
    (_F, "seenlaunches"): ("delete",),
    (_F, "spentchallenges"): ("delete",),
    (_F, "tenantclusters"): (STATUS,),
    (_F, "verdicts"): ("delete",),
    (_KATA, "kataconfigs"): ("patch", STATUS),
    ("machine.openshift.io", "controlplanemachinesets"): ("patch",),
    ("machine.openshift.io", "machinesets"): ("patch",),
    (_M, "containerruntimeconfigs"): (*MADE, STATUS),
    (_M, "controllerconfigs"): ("create", "patch", STATUS),
    (_M, "kubeletconfigs"): ("patch", STATUS),
    (_M, "machineosbuilds"): (*MADE, STATUS),
    (_M, "machineosconfigs"): (*MADE, STATUS),
    (_M, "machineconfignodes"): MADE,
    (_M, "machineconfigpools"): (*MADE, STATUS),
    (_M, "machineconfigs"): MADE,
    (_M, "osimagestreams"): ("create", "patch", STATUS),
    (_NFD, "nodefeaturediscoveries"): (STATUS,),
    (_CONFIG, "imagepolicies"): (STATUS,),
    ("node.k8s.io", "runtimeclasses"): MADE,
    ("operator.openshift.io", "machineconfigurations"): ("create", STATUS),
    (_O, "catalogsources"): ("create", STATUS),
    (_O, "clusterserviceversions"): ("create", "delete", STATUS),
    (_O, "installplans"): ("create", STATUS),
    (_O, "operatorgroups"): (STATUS,),
    (_O, "subscriptions"): (STATUS,),
    (_T, "approvedimages"): ("create", STATUS),  # a standing approval of what was built here
    (_T, "attestationkeys"): (STATUS,),
    (_T, "machines"): (STATUS,),
    (_T, "trustedexecutionclusters"): (STATUS,),
}

# Kinds whose writes are limited by place, name or part; the rules stand below.
LIMITED: Final = frozenset({
    ("", "configmaps"), ("", "events"), ("", "namespaces"), ("", "pods"), ("", "secrets"), ("", "serviceaccounts"),
    ("apps", "daemonsets"), ("batch", "jobs"), ("certificates.k8s.io", "certificatesigningrequests"),
    (_RBAC, "clusterrolebindings"),
    (_RBAC, "clusterroles"), ("security.openshift.io", "securitycontextconstraints"), (_T, "machines"),
    (_API, "machinesets"), (_API, "controlplanemachinesets"), (_API, "machines"), (_METAL, "baremetalhosts"),
    (_BOOT, "fastnessconfigs"),
})  # fmt: skip

_CONSTRAINTS: Final = (kata.INSTALLER_SCC, kata.MONITOR_SCC, kata.ADAPTOR)
_OTHERS: Final = sorted({
    *machine_configs.DEPLOYED, *machine_api.DEPLOYED,
    *(name for places in workloads.DEPLOYMENTS_OF_OTHERS.values() for _, name in places),
})  # fmt: skip
_EVERYWHERE: Final[tuple[Rule, ...]] = (
    EVENTS,
    # Whether another operator does this work already: its Deployments and Leases, by their names.
    ("apps", ["deployments"], ["get"], _OTHERS),
    ("coordination.k8s.io", ["leases"], ["get"], machine_configs.LED),
    ("admissionregistration.k8s.io", ["validatingwebhookconfigurations"], LOOK),  # whether the webhook guards the API
    (_F, ["evidenceblobs"], ["list"]),
    # What OpenShift says about names and networks, where the cluster is one.
    ("config.openshift.io", ["dnses", "networks"], ["get"], ["cluster"]),
    # Which pods are on a node that is drained, or use a runtime class that is to go; evicting asks their budgets.
    ("", ["pods"], LOOK),
    ("", ["pods/eviction"], ["create"]),
    ("", ["namespaces"], ["patch"], [NAMESPACE]),  # a note of which operator was there
    # Certificates of kubelets: the decision, for the two signers that are theirs.
    ("certificates.k8s.io", ["certificatesigningrequests/approval"], ["patch"]),
    ("certificates.k8s.io", ["signers"], ["approve"], SIGNERS),
    # The role of the installer's pods gives what this account may do to nodes itself, so `escalate` is not needed.
    (_RBAC, ["clusterroles", "clusterrolebindings"], ["create"]),
    (_RBAC, ["clusterroles"], ["bind"], [kata.INSTALLER_ACCOUNT, "system:node-bootstrapper"]),
    (_RBAC, ["clusterroles"], CHANGED, [kata.INSTALLER_ACCOUNT]),
    (_RBAC, ["clusterrolebindings"], CHANGED, [kata.INSTALLER_ACCOUNT, BINDING, pool_tokens.BINDING]),
    ("security.openshift.io", ["securitycontextconstraints"], ["create"]),
    ("security.openshift.io", ["securitycontextconstraints"], CHANGED, _CONSTRAINTS),
    # Owners that are kept until what they own is gone: API servers that check that ask for this right.
    (
        _M,
        [
            f"{plural}/finalizers"
            for plural in (
                "controllerconfigs",
                "machineconfigpools",
                "kubeletconfigs",
                "containerruntimeconfigs",
                "machineosconfigs",
            )
        ],
        ["update"],
    ),
    (_KATA, ["kataconfigs/finalizers"], ["update"]),
)
_LEASE: Final = LeaderSettings().name
_WITHIN: Final[tuple[Rule, ...]] = (
    ("coordination.k8s.io", ["leases"], ["create"]),
    ("coordination.k8s.io", ["leases"], ["get", "patch"], [_LEASE]),
    ("", ["configmaps"], MADE),  # tiles of the record, whose names nobody knows before, and what the loops publish
    (_T, ["machines"], CHANGED),
)
_ELSEWHERE: Final[tuple[tuple[str, Rule], ...]] = (
    # Requests of broker and config server for bootstrap tokens: answered, and swept.
    (bootstrap.ASKED_NAMESPACE, ("", ["secrets"], CHANGED)),
    (POOL_JOINS, ("", ["secrets"], CHANGED)),
    # Keys of disks, which the broker makes and which end with their Machines: without a vault they are bytes that open nothing.
    (DISKS, ("", ["secrets"], ["get", *CHANGED])),
    # Bootstrap tokens, where the API looks for them: their names are drawn by lot.
    (bootstrap.NAMESPACE, ("", ["secrets"], MADE)),
    # User-data of pools, whose names end alike; rules know no endings.
    (USER_DATA_NAMESPACE, ("", ["secrets"], MADE)),
    # Machines that sets ask for, the hosts that become them, and what both report.
    (USER_DATA_NAMESPACE, (_API, ["machines"], MADE)),
    (
        USER_DATA_NAMESPACE,
        (_API, ["machinesets/status", "controlplanemachinesets/status", "machines/status"], ["patch"]),
    ),
    (USER_DATA_NAMESPACE, (_API, ["machinesets/finalizers", "controlplanemachinesets/finalizers"], ["update"])),
    (USER_DATA_NAMESPACE, (_METAL, ["baremetalhosts"], ["patch"])),
    # What Cluster API says about the machines that our configs are for, and what we tell it.
    (USER_DATA_NAMESPACE, ("cluster.x-k8s.io", ["clusters", "machines"], ["get"])),
    (USER_DATA_NAMESPACE, (_BOOT, ["fastnessconfigs/status"], ["patch"])),
    (USER_DATA_NAMESPACE, (_BOOT, ["fastnessconfigs/finalizers"], ["update"])),
    (kata.CLUSTER_PULL_SECRET[0], ("", ["secrets"], ["get"], [kata.CLUSTER_PULL_SECRET[1]])),
    # Credentials of the cluster's own registry: a ServiceAccount names them, and their names are drawn by lot.
    (OPERATOR, ("", ["secrets"], ["get"])),
    (kata.NAMESPACE, ("", ["secrets"], ["create"])),
    (kata.NAMESPACE, ("", ["secrets"], CHANGED, [kata.PULL_SECRET])),
    (kata.NAMESPACE, ("", ["configmaps", "serviceaccounts"], MADE)),
    (kata.NAMESPACE, ("apps", ["daemonsets"], MADE)),
    (kata.DASHBOARD_NAMESPACE, ("", ["configmaps"], ["create"])),
    (kata.DASHBOARD_NAMESPACE, ("", ["configmaps"], CHANGED, [kata.DASHBOARD])),
    (MANAGED, ("", ["configmaps"], ["patch"], [MERGED])),  # which the rule above lets it create
)
BUILDING: Final[tuple[Rule, ...]] = (
    # Jobs that build images, what their pods are given, and what these print. Whoever creates Jobs in a namespace can mount its
    # Secrets: this is granted only where an administrator turned builds on.
    ("batch", ["jobs"], ["get", *MADE]),
    ("", ["configmaps", "secrets"], MADE),
    ("", ["pods/log"], ["get"]),
)
"""In the namespace of builds, where they are turned on."""
NAMESPACES: Final = (
    OPERATOR_NAMESPACE,
    USER_DATA_NAMESPACE,
    machine_configs.NAMESPACE,
    kata.NAMESPACE,
    kata.CLUSTER_PULL_SECRET[0],
    kata.DASHBOARD_NAMESPACE,
    MARKETPLACE,
    OPERATOR,
)
"""Made with the account, where no distribution made them."""


def declared() -> list[Controller]:
    """The controllers of the product with their declarations; nothing of them runs."""
    nowhere: Any = SimpleNamespace(listen=None)
    statuses = Statuses("controllers", nowhere, nowhere, SystemEntropy())
    informers = Informers(nowhere, clock=nowhere, entropy=nowhere)
    return product_loops(nowhere, informers, nowhere, SystemEntropy(), statuses=statuses)


def controllers() -> RoleAccount:
    """The account, from the declarations and the tables."""
    loops = declared()
    everywhere, places = _looked_at(loops)
    return RoleAccount(
        "controllers", SECRETS, elsewhere=(*places, *_ELSEWHERE), record="controllers", within=_WITHIN,
        everywhere=(*everywhere, *_written(), *_EVERYWHERE),
    )  # fmt: skip


def _looked_at(loops: Iterable[Controller]) -> tuple[list[Rule], list[tuple[str, Rule]]]:
    """Rules for the sources of loops: in the whole cluster, and in namespaces."""
    cluster: dict[str, set[str]] = {}
    places: dict[tuple[str, str, str], set[str]] = {}
    for source in (read for loop in loops for read in loop.sources):
        group, plural, place = source.resource.group, source.resource.plural, source.scope.namespace
        if not place:
            cluster.setdefault(group, set()).add(plural)
        elif place != NAMESPACE:  # at home are ConfigMaps, which every role reads, and Secrets, by name
            places.setdefault((place, group, plural), set()).add(source.scope.fields.partition("metadata.name=")[2])
    return (
        [(group, sorted(plurals), LOOK) for group, plurals in sorted(cluster.items())],
        [
            (place, (group, [plural], LOOK, [] if "" in names else sorted(names)))
            for (place, group, plural), names in sorted(places.items())
        ],
    )


def _written() -> list[Rule]:
    """Rules for what loops write in the whole cluster; kinds of one group that are treated alike stand together."""
    alike: dict[tuple[str, Sequence[str]], list[str]] = {}
    for (group, plural), deeds in WRITES.items():
        verbs = tuple(deed for deed in deeds if deed != STATUS)
        for name, granted in ((plural, verbs), (f"{plural}/status", ("patch",) if STATUS in deeds else ())):
            if granted:
                alike.setdefault((group, granted), []).append(name)
    return [(group, plurals, verbs) for (group, verbs), plurals in alike.items()]
