"""Rows of the ControllerConfig: its copy of the status of Infrastructure."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.kinds.rules import messages as m
from tests.unit.kinds.rules.cases import CONTROLLER, Case, at, case
from tests.unit.kinds.rules.platform_spec_rows import FOUR, SIX, VIRTUAL_IPS, families, network_rows

PLATFORM: Final = "spec.infra.status.platformStatus"
_HOSTED: Final = {"dnsType": "ClusterHosted", "clusterHosted": {}}


def _cloud_rows(cloud: str) -> list[Case]:
    place = f"{PLATFORM}.{cloud}.cloudLoadBalancerConfig"
    rows = [
        case(CONTROLLER, place, "clusterHosted is permitted only when dnsType is ClusterHosted", _HOSTED,
             {"dnsType": "PlatformDefault", "clusterHosted": {}}),
        case(CONTROLLER, f"{place}.dnsType", "dnsType is immutable", "ClusterHosted", "PlatformDefault", old="ClusterHosted"),
    ]  # fmt: skip
    for field in ("apiIntLoadBalancerIPs", "apiLoadBalancerIPs", "ingressLoadBalancerIPs"):
        hosted = ({"dnsType": "ClusterHosted", "clusterHosted": {field: [ip]}} for ip in m.IP[1:])
        documents = (at(CONTROLLER, place, each) for each in hosted)
        rows.append(Case(CONTROLLER, f"{place}.clusterHosted.{field}[]", m.IP[0], *documents))
    return rows


def _settled(path: str, name: str) -> Case:
    return case(CONTROLLER, f"{PLATFORM}.{path}", f"{name} is immutable once set", "a", "b", old="a")


_ALLOWED: Final = (
    "The string can contain only the set of alphanumeric characters, "
    "space (' '), '_', '.', '/', '=', '+', '-', ':', '@'"
)


def _installed(cloud: str, field: str, first: dict[str, Any], second: dict[str, Any]) -> list[Case]:
    place = f"{PLATFORM}.{cloud}"
    return [
        case(CONTROLLER, place, f"{field} may only be configured during installation", {}, {field: [first]}, old={}),
        case(CONTROLLER, f"{place}.{field}", f"{field} are immutable and may only be configured during installation",
             [second, first], [first], old=[first, second]),
    ]  # fmt: skip


def _pair(key: str, **more: str) -> dict[str, Any]:
    return {"key": key, "value": "v", **more}


CLOUD_ROWS: Final = [
    *(row for cloud in ("aws", "azure", "gcp") for row in _cloud_rows(cloud)),
    _settled("aws.ipFamily", "ipFamily"),
    _settled("azure.ipFamily", "ipFamily"),
    *(case(CONTROLLER, f"{PLATFORM}.aws.resourceTags[].{part}", f"invalid AWS resource tag {part}. {_ALLOWED}",
           "Team a/b:c=d+e-f@g_1,<?>", "team#1") for part in ("key", "value")),
    *_installed("azure", "resourceTags", _pair("a"), _pair("b")),
    *_installed("gcp", "resourceTags", _pair("a", parentID="1"), _pair("b", parentID="1")),
    *_installed("gcp", "resourceLabels", _pair("a"), _pair("b")),
    case(CONTROLLER, f"{PLATFORM}.gcp.resourceLabels[].key",
         "label keys must not start with either `openshift-io` or `kubernetes-io`", "team", "kubernetes-io-cluster"),
    case(CONTROLLER, f"{PLATFORM}.gcp.universeDomain",
         "universeDomain must be a valid DNS subdomain: contain no more than 253 characters, contain only lowercase alphanumeric "
         "characters, '-' or '.', and start and end with an alphanumeric character", "apis.example.com", "Apis_1"),
]  # fmt: skip


def _on_premises_rows(provider: str) -> list[Case]:
    place = f"{PLATFORM}.{provider}"
    user_managed, managed = {"type": "UserManaged"}, {"type": "OpenShiftManagedDefault"}
    return [
        *(case(CONTROLLER, f"{place}.{field}", families(field), [FOUR, SIX], [FOUR, "192.0.2.2"], old=[FOUR])
          for field in VIRTUAL_IPS),
        case(CONTROLLER, f"{place}.loadBalancer.type", "type is immutable once set", user_managed["type"], managed["type"],
             old=user_managed["type"]),
        case(CONTROLLER, place, "dnsRecordsType may only be set to External when loadBalancer.type is UserManaged",
             {"dnsRecordsType": "External", "loadBalancer": user_managed}, {"dnsRecordsType": "External"}),
    ]  # fmt: skip


_CONTROLLER_MANAGER: Final = f"{PLATFORM}.external.cloudControllerManager"
_ADDED: Final = "state may not be added or removed once set"
OTHER_ROWS: Final = [
    *(row for provider in ("baremetal", "nutanix", "openstack", "ovirt", "vsphere") for row in _on_premises_rows(provider)),
    # The rule about pairs speaks of changes alone: what an installer wrote stays, whatever it is.
    case(CONTROLLER, f"{PLATFORM}.vsphere.ingressIPs", families("ingressIPs"), [FOUR, "192.0.2.2"], [FOUR, "192.0.2.3"],
         old=[FOUR, "192.0.2.2"], again=True),
    *(row for provider in ("baremetal", "openstack", "vsphere") for row in network_rows(f"{PLATFORM}.{provider}")),
    _settled("baremetal.vipManagement", "vipManagement"),
    case(CONTROLLER, f"{PLATFORM}.external", "cloudControllerManager may not be added or removed once set",
         {"cloudControllerManager": {"state": ""}}, {}, old={"cloudControllerManager": {"state": ""}}),
    case(CONTROLLER, _CONTROLLER_MANAGER, _ADDED, {"state": "None"}, {"state": "External"}, old={}),
    case(CONTROLLER, _CONTROLLER_MANAGER, _ADDED, {"state": "None"}, {}, old={"state": "None"}, again=True),
    case(CONTROLLER, f"{_CONTROLLER_MANAGER}.state", "state is immutable once set", "External", "None", old="External"),
    case(CONTROLLER, f"{PLATFORM}.ibmcloud.serviceEndpoints[].url", "url must be a valid absolute URL",
         "http://iam.example.com", "iam"),
    case(CONTROLLER, f"{PLATFORM}.powervs", "cannot unset resourceGroup once set", {"resourceGroup": "a"}, {},
         old={"resourceGroup": "a"}),
    _settled("powervs.resourceGroup", "resourceGroup"),
    case(CONTROLLER, f"{PLATFORM}.powervs.resourceGroup", "resourceGroup is immutable once set", "a", "b", old="a", again=True),
]  # fmt: skip

ROWS: Final = [*CLOUD_ROWS, *OTHER_ROWS]
