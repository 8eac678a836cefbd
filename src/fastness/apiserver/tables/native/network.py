"""Printers of how traffic finds pods: services, endpoints, ingresses, network policies."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from fastness.apiserver.tables.ages import UNKNOWN
from fastness.apiserver.tables.native.reading import (
    NONE,
    SHOWN,
    UNSET,
    Cells,
    Obj,
    age_of,
    count,
    cut,
    entries,
    labels_text,
    name_of,
    part,
    selector_text,
    text,
    words,
)

DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"


def service(obj: Obj, now: datetime) -> list[Any]:
    """Type, addresses, ports."""
    spec = part(obj, "spec")
    addresses = words(spec, "clusterIPs")
    ports = ",".join(_service_port(port) for port in entries(spec, "ports"))
    return [
        name_of(obj),
        text(spec, "type"),
        addresses[0] if addresses else NONE,
        _external_address(obj),
        ports or NONE,
        age_of(obj, now),
        labels_text(part(spec, "selector")),
    ]


def _service_port(port: Obj) -> str:
    node_port = count(port, "nodePort")
    middle = f":{node_port}" if node_port > 0 else ""
    return f"{count(port, 'port')}{middle}/{text(port, 'protocol')}"


def _external_address(obj: Obj) -> str:
    spec = part(obj, "spec")
    own = words(spec, "externalIPs")
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            balanced = _balancer(obj)
            return ",".join([*([balanced] if balanced else []), *own]) or "<pending>"
        case "ExternalName":
            return text(spec, "externalName")
    return UNKNOWN


def _balancer(obj: Obj) -> str:
    ingress = entries(obj, "status", "loadBalancer", "ingress")
    hosts = {text(entry, "ip") or text(entry, "hostname") for entry in ingress}
    return ",".join(sorted(hosts - {""}))


def endpoints(obj: Obj, now: datetime) -> list[Any]:
    """The first three addresses with their ports."""
    addressed: list[str] = []
    for subset in entries(obj, "subsets"):
        addresses = [text(entry, "ip") for entry in entries(subset, "addresses")]
        ports = entries(subset, "ports")
        addressed += [_host_port(ip, count(port, "port")) for port in ports for ip in addresses] if ports else addresses
    cell = cut(addressed, len(addressed), "") if entries(obj, "subsets") else NONE
    return [name_of(obj), cell, age_of(obj, now)]


def _host_port(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def endpoint_slice(obj: Obj, now: datetime) -> list[Any]:
    """Ports and the first three addresses."""
    ports = [text(port, "port") or text(port, "name") or "*" for port in entries(obj, "ports")]
    addresses = [address for entry in entries(obj, "endpoints") for address in words(entry, "addresses")]
    return [
        name_of(obj),
        text(obj, "addressType"),
        cut(ports, len(ports), UNSET),
        cut(addresses, len(addresses), UNSET),
        age_of(obj, now),
    ]


def ingress(obj: Obj, now: datetime) -> list[Any]:
    """Class, hosts, address, ports."""
    spec = part(obj, "spec")
    return [
        name_of(obj),
        text(spec, "ingressClassName", default=NONE),
        _hosts(entries(spec, "rules")),
        _balancer(obj),
        "80, 443" if entries(spec, "tls") else "80",
        age_of(obj, now),
    ]


def _hosts(rules: list[Obj]) -> str:
    hosts: list[str] = []
    for index, rule in enumerate(rules):
        if len(hosts) == SHOWN and index < len(rules):
            return f"{','.join(hosts)} + {len(rules) - SHOWN} more..."
        if text(rule, "host"):
            hosts.append(text(rule, "host"))
    return ",".join(hosts) or "*"


def ingress_class(obj: Obj, now: datetime) -> list[Any]:
    """Controller and parameters; the default class says so."""
    parameters, cell = part(obj, "spec", "parameters"), NONE
    if parameters:
        group = text(parameters, "apiGroup")
        cell = f"{text(parameters, 'kind')}{f'.{group}' if group else ''}/{text(parameters, 'name')}"
    default = text(obj, "metadata", "annotations", DEFAULT_CLASS) == "true"
    name = name_of(obj) + (" (default)" if default else "")
    return [name, text(obj, "spec", "controller"), cell, age_of(obj, now)]


def network_policy(obj: Obj, now: datetime) -> list[Any]:
    """Which pods it is about."""
    return [name_of(obj), selector_text(part(obj, "spec").get("podSelector")), age_of(obj, now)]


CELLS: Final[dict[tuple[str, str], Cells]] = {
    ("", "Endpoints"): endpoints,
    ("", "Service"): service,
    ("discovery.k8s.io", "EndpointSlice"): endpoint_slice,
    ("networking.k8s.io", "Ingress"): ingress,
    ("networking.k8s.io", "IngressClass"): ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): network_policy,
}
