"""Addresses and networks of a platform, in the shapes that its providers share.

A cluster has one address of each family at most, so a list of two is judged as a pair. Where the value is only observed
(`status_ips`), the rule looks at changes alone: what an installer once wrote stays.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s

VIRTUAL_IPS = {
    "apiServerInternalIPs": "Addresses of the API server inside of the cluster, one of each family at most.",
    "ingressIPs": "Addresses of the default ingress, one of each family at most.",
}

_PAIR = (
    "self.size() != 2 || !isIP(self[0]) || !isIP(self[1]) || ip(self[0]).family() != ip(self[1]).family()"
)  # fmt: skip


def _message(field: str) -> str:
    return f"{field} must contain at most one IPv4 address and at most one IPv6 address"


def ip() -> s.Fragment:
    """An IP address."""
    return s.with_rules(s.string(minLength=1, maxLength=39), predicates.IP)


def spec_ips() -> dict[str, s.Fragment]:
    """The virtual addresses of a spec."""
    return {
        field: s.with_rules(s.array(ip(), description, maxItems=2, **s.ATOMIC), s.rule(_PAIR, _message(field)))
        for field, description in VIRTUAL_IPS.items()
    }


def status_ips(list_type: str) -> dict[str, s.Fragment]:
    """The virtual addresses of a status."""
    return {
        field: s.with_rules(
            s.array(s.string(), description, maxItems=2, **{"x-kubernetes-list-type": list_type}),
            s.rule(f"self == oldSelf || {_PAIR}", _message(field)),
        )
        for field, description in VIRTUAL_IPS.items()
    }


def machine_networks() -> dict[str, s.Fragment]:
    """The networks that machines stand in."""
    network = s.with_rules(s.string(minLength=1, maxLength=43), predicates.CIDR)
    networks = s.array(network, "Networks that connect the machines of the cluster.", maxItems=32, **s.ATOMIC)
    return {"machineNetworks": s.with_rules(networks, predicates.distinct())}


def required_once_set() -> list[s.Fragment]:
    """Rules on a spec: its virtual addresses do not go away."""
    return [
        s.rule(f"!has(oldSelf.{field}) || has(self.{field})", f"{field} list is required once set")
        for field in VIRTUAL_IPS
    ]
