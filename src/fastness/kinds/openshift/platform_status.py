"""What was observed of an Infrastructure's platform: one member for each provider, and the rules about them.

Most of it is decided once, when a cluster is installed: its rules compare with what was there before. Only what has a rule or a
default is spelled out; the rest of each member is kept as it came.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.openshift.addresses import ip, machine_networks, status_ips
from fastness.kinds.openshift.platform_spec import service_endpoints

_LOAD_BALANCERS = {
    "apiIntLoadBalancerIPs": "Addresses of the API inside of the cluster.",
    "apiLoadBalancerIPs": "Addresses of the API.",
    "ingressLoadBalancerIPs": "Addresses of the ingress.",
}

_CLOUD_BALANCER = s.with_rules(
    s.obj(
        {
            "dnsType": s.with_rules(
                s.enum(
                    "ClusterHosted", "PlatformDefault", description="Who answers for names.", default="PlatformDefault"
                ),
                predicates.settled("dnsType is immutable"),
            ),
            "clusterHosted": s.obj(
                {field: s.list_set(ip(), description, maxItems=16) for field, description in _LOAD_BALANCERS.items()},
                "Addresses for names that the cluster answers for itself.",
                **s.KEEP,
            ),
        },
        "Names and load balancers of the cloud.",
        default={"dnsType": "PlatformDefault"},
        **s.KEEP,
    ),
    s.rule(
        "!has(self.dnsType) || self.dnsType == 'ClusterHosted' || !has(self.clusterHosted)",
        "clusterHosted is permitted only when dnsType is ClusterHosted",
    ),
)

_IP_FAMILY = s.with_rules(
    s.string("Address families of the cluster.", default="IPv4", maxLength=64),
    predicates.settled("ipFamily is immutable once set"),
)


def _during_installation(field: str) -> s.Fragment:
    return s.rule(f"has(self.{field}) == has(oldSelf.{field})", f"{field} may only be configured during installation")


def _as_installed(fragment: s.Fragment, field: str) -> s.Fragment:
    return s.with_rules(
        fragment,
        s.rule(
            "self.all(entry, entry in oldSelf) && oldSelf.all(entry, entry in self)",
            f"{field} are immutable and may only be configured during installation",
        ),
    )


def _text(longest: int, *rules: s.Fragment) -> s.Fragment:
    return s.with_rules(s.string(minLength=1, maxLength=longest), *rules)


def _aws_text(longest: int, part: str) -> s.Fragment:
    # From plus to Z: digits and the punctuation between them, as the public API lets them through.
    allowed = predicates.pattern(
        "^[ +-Z_a-z]+$",
        f"invalid AWS resource tag {part}. The string can contain only the set of alphanumeric characters, space (' '), "
        "'_', '.', '/', '=', '+', '-', ':', '@'",
    )
    return _text(longest, allowed)


_AWS = s.obj(
    {
        "resourceTags": s.array(
            s.obj({"key": _aws_text(128, "key"), "value": _aws_text(256, "value")}, required=("key", "value")),
            "Tags on what the cluster makes.",
            maxItems=25,
            **s.ATOMIC,
        ),
        "cloudLoadBalancerConfig": {**_CLOUD_BALANCER, "nullable": True},
        "ipFamily": _IP_FAMILY,
    },
    "Amazon Web Services.",
    **s.KEEP,
)

_AZURE = s.with_rules(
    s.obj(
        {
            "resourceTags": _as_installed(
                s.array(
                    s.obj({"key": _text(128), "value": _text(256)}, required=("key", "value")),
                    "Tags on what the cluster makes.",
                    maxItems=10,
                    **s.ATOMIC,
                ),
                "resourceTags",
            ),
            "cloudLoadBalancerConfig": _CLOUD_BALANCER,
            "ipFamily": _IP_FAMILY,
        },
        "Azure.",
        **s.KEEP,
    ),
    _during_installation("resourceTags"),
)

_GCP_LABEL = s.obj(
    {
        "key": _text(
            63,
            s.rule(
                "!self.startsWith('openshift-io') && !self.startsWith('kubernetes-io')",
                "label keys must not start with either `openshift-io` or `kubernetes-io`",
            ),
        ),
        "value": _text(63),
    },
    required=("key", "value"),
)
_GCP_TAG = s.obj({"parentID": _text(32), "key": _text(63), "value": _text(63)}, required=("parentID", "key", "value"))

_GCP = s.with_rules(
    s.obj(
        {
            "resourceLabels": _as_installed(
                s.list_map(_GCP_LABEL, ("key",), "Labels on what the cluster makes.", maxItems=32), "resourceLabels"
            ),
            "resourceTags": _as_installed(
                s.list_map(_GCP_TAG, ("key",), "Tags on what the cluster makes.", maxItems=50), "resourceTags"
            ),
            "cloudLoadBalancerConfig": {**_CLOUD_BALANCER, "nullable": True},
            "universeDomain": s.with_rules(
                s.string("Domain of the cloud's services.", minLength=1, maxLength=predicates.LONGEST_NAME),
                predicates.pattern(
                    s.DNS_SUBDOMAIN,
                    "universeDomain must be a valid DNS subdomain: contain no more than 253 characters, contain only "
                    "lowercase alphanumeric characters, '-' or '.', and start and end with an alphanumeric character",
                ),
            ),
        },
        "Google Cloud.",
        **s.KEEP,
    ),
    _during_installation("resourceLabels"),
    _during_installation("resourceTags"),
)

_BALANCER = s.obj(
    {
        "type": s.with_rules(
            s.enum(
                "OpenShiftManagedDefault",
                "UserManaged",
                description="Who looks after the load balancer.",
                default="OpenShiftManagedDefault",
            ),
            predicates.settled("type is immutable once set"),
        )
    },
    "The load balancer of the API and of the ingress.",
    default={"type": "OpenShiftManagedDefault"},
    **s.KEEP,
)


def _on_premises(description: str, more: dict[str, s.Fragment], list_type: str = "atomic") -> s.Fragment:
    fields = {
        **status_ips(list_type),
        "loadBalancer": _BALANCER,
        "dnsRecordsType": s.enum("Internal", "External", description="Who answers for the names of these addresses."),
        **more,
    }
    return s.with_rules(
        s.obj(fields, description, **s.KEEP),
        s.rule(
            "!has(self.dnsRecordsType) || self.dnsRecordsType == 'Internal' || "
            "(has(self.loadBalancer) && has(self.loadBalancer.type) && self.loadBalancer.type == 'UserManaged')",
            "dnsRecordsType may only be set to External when loadBalancer.type is UserManaged",
        ),
    )


_CLOUD_CONTROLLER = s.with_rules(
    s.obj(
        {
            "state": s.with_rules(
                s.enum("", "External", "None", description="Whether a cloud controller manager is expected."),
                predicates.unchanged("state is immutable once set"),
            )
        },
        "The cloud controller manager.",
        **s.KEEP,
    ),
    s.rule(
        "has(self.state) == has(oldSelf.state) || (!has(oldSelf.state) && self.state != 'External')",
        "state may not be added or removed once set",
    ),
)

_EXTERNAL = s.with_rules(
    s.obj({"cloudControllerManager": _CLOUD_CONTROLLER}, "A provider that is not built in.", **s.KEEP),
    s.rule(
        "has(self.cloudControllerManager) == has(oldSelf.cloudControllerManager)",
        "cloudControllerManager may not be added or removed once set",
    ),
)

_POWERVS = s.with_rules(
    s.obj(
        {
            "resourceGroup": s.with_rules(
                s.string("The group of what the cluster makes.", maxLength=40),
                predicates.settled("resourceGroup is immutable once set"),
            )
        },
        "Power Virtual Server.",
        **s.KEEP,
    ),
    s.rule("!has(oldSelf.resourceGroup) || has(self.resourceGroup)", "cannot unset resourceGroup once set"),
)

_VIP_MANAGEMENT = s.with_rules(
    s.string("How virtual addresses reach the machines.", maxLength=64),
    predicates.settled("vipManagement is immutable once set"),
)

PLATFORM_STATUS = s.obj(
    {
        "type": s.string("The provider."),
        "aws": _AWS,
        "azure": _AZURE,
        "gcp": _GCP,
        "baremetal": _on_premises(
            "Machines without a provider of virtual ones.", {"vipManagement": _VIP_MANAGEMENT, **machine_networks()}
        ),
        "openstack": _on_premises("OpenStack.", machine_networks()),
        "vsphere": _on_premises("vSphere.", machine_networks()),
        "nutanix": _on_premises("Nutanix.", {}, "set"),
        "ovirt": _on_premises("oVirt.", {}, "set"),
        "ibmcloud": s.obj({"serviceEndpoints": service_endpoints()}, "IBM Cloud.", **s.KEEP),
        "powervs": _POWERVS,
        "external": _EXTERNAL,
    },
    "What was observed of the provider.",
    **s.KEEP,
)
