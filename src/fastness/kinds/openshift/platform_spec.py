"""What an Infrastructure wants of its platform: one member for each provider, and the rules about them.

Only what has a rule is spelled out; the rest of each member is kept as it came.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.openshift.addresses import machine_networks, required_once_set, spec_ips

MOST_ENDPOINTS = 13
"""As many as there are services with an endpoint to name."""
LONGEST_SERVER = 255
MOST_FAILURE_DOMAINS = 1000
"""No limit of the public API, where the size of a request is one: rules about every entry need a number."""


def _on_premises(description: str, more: dict[str, s.Fragment] | None = None) -> s.Fragment:
    fields = {**spec_ips(), **machine_networks(), **(more or {})}
    return s.with_rules(s.obj(fields, description, **s.KEEP), *required_once_set())


def service_endpoints(*more: s.Fragment) -> s.Fragment:
    """Endpoints of a cloud's services; `more` are rules beside that each is a URL."""
    url = s.with_rules(
        s.string("Where the service answers.", maxLength=300),
        s.rule("isURL(self)", "url must be a valid absolute URL"),
        *more,
    )
    endpoint = s.obj({"name": s.string("Name of the service."), "url": url}, required=("name", "url"))
    return s.list_map(endpoint, ("name",), "Endpoints instead of the usual ones.", maxItems=MOST_ENDPOINTS)


_IBM_CLOUD = s.obj(
    {
        "serviceEndpoints": service_endpoints(
            s.rule("!isURL(self) || url(self).getScheme() == 'https'", "url must use https scheme"),
            s.rule(
                # Of the whole text and not of `getEscapedPath`: how long that gets, an API server cannot bound.
                r"!isURL(self) || self.matches(r'^[^:/?#]+:(//[^/?#]*)?/(api/)?v[0-9]+/?([?#].*)?$')",
                "url path must match /v[0,9]+ or /api/v[0,9]+",
            ),
        )
    },
    "IBM Cloud.",
    **s.KEEP,
)


def _identifier(description: str) -> s.Fragment:
    return s.with_rules(
        s.obj(
            {
                "type": s.enum("UUID", "Name", description="How the resource is named."),
                "uuid": s.string("Its UUID.", maxLength=1024),
                "name": s.string("Its name.", maxLength=1024),
            },
            description,
            required=("type",),
        ),
        *(
            predicates.member_iff(
                member,
                "type",
                value,
                f"{member} configuration is required when type is {value}, and forbidden otherwise",
            )
            for member, value in (("uuid", "UUID"), ("name", "Name"))
        ),
    )


_SUBNETS = s.with_rules(
    s.array(_identifier("A network."), "Networks of its machines.", minItems=1, maxItems=32, **s.ATOMIC),
    predicates.distinct("each subnet must be unique"),
)

_NUTANIX = s.obj(
    {
        "failureDomains": s.list_map(
            s.obj(
                {
                    "name": s.string("Name of the domain.", minLength=1, maxLength=64),
                    "cluster": _identifier("The cluster that its machines are in."),
                    "subnets": _SUBNETS,
                },
                required=("name", "cluster", "subnets"),
                **s.KEEP,
            ),
            ("name",),
            "Where machines can be spread to.",
            maxItems=32,
        )
    },
    "Nutanix.",
    **s.KEEP,
)


def _affinity(zone: str, region: str) -> s.Fragment:
    return s.rule(
        f"!has(self.zoneAffinity) || self.zoneAffinity.type != '{zone}' || "
        f"(has(self.regionAffinity) && self.regionAffinity.type == '{region}')",
        f"when zoneAffinity type is {zone}, regionAffinity type must be {region}",
    )


_FAILURE_DOMAIN = s.with_rules(
    s.obj(
        {
            "name": s.string("Name of the domain.", minLength=1, maxLength=256),
            "server": s.string("The vCenter that it belongs to.", minLength=1, maxLength=LONGEST_SERVER),
            "regionAffinity": s.obj(
                {"type": s.enum("ComputeCluster", "Datacenter", description="What a region is.")},
                "What a region is.",
                required=("type",),
                **s.KEEP,
            ),
            "zoneAffinity": s.with_rules(
                s.obj(
                    {
                        "type": s.enum("HostGroup", "ComputeCluster", description="What a zone is."),
                        "hostGroup": s.anything("The groups that make up a zone of hosts."),
                    },
                    "What a zone is.",
                    required=("type",),
                    **s.KEEP,
                ),
                predicates.member_iff(
                    "hostGroup",
                    "type",
                    "HostGroup",
                    "hostGroup is required when type is HostGroup, and forbidden otherwise",
                ),
            ),
        },
        required=("name", "server"),
        **s.KEEP,
    ),
    _affinity("HostGroup", "ComputeCluster"),
    _affinity("ComputeCluster", "Datacenter"),
)

_ONE_DIRECTION = "Cannot add and remove vCenters at the same time"
_VCENTERS = s.with_rules(
    s.array(
        s.obj(
            {"server": s.string("Name or address of the server.", maxLength=LONGEST_SERVER)},
            required=("server",),
            **s.KEEP,
        ),
        "The vCenters that machines are in.",
        maxItems=3,
        **s.ATOMIC,
    ),
    s.rule(
        "self.all(vcenter, self.exists_one(other, other.server == vcenter.server))",
        "vcenters must have unique server values",
    ),
    s.rule(
        "self.size() < oldSelf.size() || oldSelf.all(before, self.exists(vcenter, vcenter.server == before.server))",
        _ONE_DIRECTION,
    ),
    s.rule(
        "self.size() >= oldSelf.size() || self.all(vcenter, oldSelf.exists(before, before.server == vcenter.server))",
        _ONE_DIRECTION,
    ),
)

_VSPHERE = s.with_rules(
    _on_premises(
        "vSphere.",
        {
            "vcenters": _VCENTERS,
            "failureDomains": s.list_map(
                _FAILURE_DOMAIN, ("name",), "Where machines can be spread to.", maxItems=MOST_FAILURE_DOMAINS
            ),
        },
    ),
    s.rule(
        "!has(self.failureDomains) || self.failureDomains.all(domain, "
        "has(self.vcenters) && self.vcenters.exists(vcenter, vcenter.server == domain.server))",
        "all failure domains must have a corresponding vCenter entry",
    ),
)

_EXTERNAL = s.obj(
    {
        "platformName": s.with_rules(
            s.string("Name of a provider that is not built in.", default="Unknown"),
            s.rule("oldSelf == 'Unknown' || self == oldSelf", "platform name cannot be changed once set"),
        )
    },
    "A provider that is not built in.",
    **s.KEEP,
)

PLATFORM_SPEC = s.with_rules(
    s.obj(
        {
            "type": s.string("The provider."),
            "baremetal": _on_premises("Machines without a provider of virtual ones."),
            "openstack": _on_premises("OpenStack."),
            "vsphere": _VSPHERE,
            "external": _EXTERNAL,
            "ibmcloud": _IBM_CLOUD,
            "nutanix": _NUTANIX,
        },
        "What is wanted of the provider.",
        **s.KEEP,
    ),
    s.rule(
        "!has(oldSelf.vsphere) || !has(oldSelf.vsphere.vcenters) || (has(self.vsphere) && has(self.vsphere.vcenters))",
        "vcenters is required once set and cannot be removed",
    ),
)
