"""Values that CEL does not have and Kubernetes adds: quantities, URLs, addresses, networks, semantic versions.

The CEL library knows no types of ours, so such a value travels through a rule as a small map with one tagged entry in canonical
form: two quantities are equal when their maps are. Every function takes its argument apart again and refuses a foreign map.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from fastness.apiserver.schema.formats import CHECKS
from fastness.formats.errors import QuantityError
from fastness.formats.quantity import parse_quantity

Tagged = dict[str, Any]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface

_INT64: Final = 2**63
_NANO: Final = 10**9


def _take(value: Tagged, tag: str) -> Any:
    if tag not in value or len(value) != 1:
        raise ValueError(f"no such overload: the value is no {tag}")
    return value[tag]


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _quantity(text: str) -> Tagged:
    try:
        return _tag_quantity(parse_quantity(text).nanos)
    except QuantityError as error:
        raise ValueError(f"{text!r} is no quantity") from error


def _tag_quantity(nanos: int) -> Tagged:
    # a text, because billionths do not fit into the integers of CEL
    return {"quantity": str(nanos)}


def _nanos(value: Tagged) -> int:
    return int(_take(value, "quantity"))


def _as_integer(value: Tagged) -> int:
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _nanos(value) // _NANO


def _is_integer(value: Tagged) -> bool:
    whole, rest = divmod(_nanos(value), _NANO)
    return rest == 0 and -_INT64 <= whole < _INT64


def _sign(value: Tagged) -> int:
    nanos = _nanos(value)
    return (nanos > 0) - (nanos < 0)


_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)


def _normal_semver(text: str) -> str:
    core, mark, rest = re.sub(r"^v", "", text).partition("-")
    parts = [part.lstrip("0") or "0" for part in core.split(".")]
    return ".".join([*parts, "0", "0"][: max(3, len(parts))]) + mark + rest


def _is_semver(text: str, normalize: bool = False) -> bool:
    return _SEMVER.fullmatch(_normal_semver(text) if normalize else text) is not None


def _semver(text: str, normalize: bool = False) -> Tagged:
    text = _normal_semver(text) if normalize else text
    if not _is_semver(text):
        raise ValueError(f"{text!r} is no semantic version")
    return {"semver": text.partition("+")[0]}


def _semver_part(position: int) -> Callable[[Tagged], int]:
    return lambda value: int(_take(value, "semver").partition("-")[0].split(".")[position])


def _semver_order(value: Tagged) -> tuple[Any, ...]:
    core, _, pre = _take(value, "semver").partition("-")
    marks = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")) if pre else ()
    return (tuple(int(n) for n in core.split(".")), not pre, marks)


def _compare(a: Tagged, b: Tagged) -> int:
    if "semver" in a:
        first, second = _semver_order(a), _semver_order(b)
        return (first > second) - (first < second)
    left, right = _nanos(a), _nanos(b)
    return (left > right) - (left < right)


def _is_url(text: str) -> bool:
    return CHECKS["uri"](text)


def _url(text: str) -> Tagged:
    if not _is_url(text):
        raise ValueError(f"{text!r} is no URL")
    return {"url": text}


def _url_part(part: Callable[[Any], str]) -> Callable[[Tagged], str]:
    return lambda value: part(urlsplit(_take(value, "url")))


def _port(parts: Any) -> str:
    return "" if parts.port is None else str(parts.port)


def _hostname(parts: Any) -> str:
    host: str = parts.netloc.rpartition("@")[2]
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _query(value: Tagged) -> dict[str, list[str]]:
    return parse_qs(urlsplit(_take(value, "url")).query, keep_blank_values=True)


def _parse_ip(text: str) -> Address:
    address = ipaddress.ip_address(text)
    # As Kubernetes' ip() refuses them: one address in two spellings would pass a rule that names the other.
    if "%" in text or (address.version == 6 and address.ipv4_mapped is not None):
        raise ValueError(f"{text!r} is an address with a zone, or an IPv4 address in IPv6 form")
    return address


def _is(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _tag_ip(text: str) -> Tagged:
    return {"ip": str(_parse_ip(text))}


def _ip(value: Tagged) -> Address:
    return ipaddress.ip_address(_take(value, "ip"))


def _test_ip(test: Callable[[Any], bool]) -> Callable[[Tagged], bool]:
    return lambda value: bool(test(_ip(value)))


def _global_unicast(address: Address) -> bool:
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def _link_local_multicast(address: Address) -> bool:
    return str(address).startswith("224.0.0.") if address.version == 4 else address.packed[:2] in (b"\xff\x02",)


def _parse_cidr(text: str) -> Network:
    address, slash, length = text.partition("/")
    if not slash or re.fullmatch(r"0|[1-9]\d{0,2}", length, re.ASCII) is None:
        raise ValueError(f"{text!r} is no network")
    _parse_ip(address)
    return ipaddress.ip_interface(text)


def _tag_cidr(text: str) -> Tagged:
    return {"cidr": str(_parse_cidr(text))}


def _cidr(value: Tagged) -> Network:
    return ipaddress.ip_interface(_take(value, "cidr"))


def _contains_ip(value: Tagged, address: Tagged | str) -> bool:
    return (_parse_ip(address) if isinstance(address, str) else _ip(address)) in _cidr(value).network


def _contains_cidr(value: Tagged, other: Tagged | str) -> bool:
    inner = (_parse_cidr(other) if isinstance(other, str) else _cidr(other)).network
    outer = _cidr(value).network
    return inner.version == outer.version and inner.prefixlen >= outer.prefixlen and inner.network_address in outer


M: Final = "map(dyn)"
S: Final = "string"
VALUE_FUNCTIONS: Final[tuple[tuple[str, bool, str, tuple[str, ...], Callable[..., Any]], ...]] = (
    ("isQuantity", False, "bool", (S,), _is_quantity),
    ("quantity", False, M, (S,), _quantity),
    ("sign", False, "int", (M,), _sign),
    ("isInteger", True, "bool", (M,), _is_integer),
    ("asInteger", True, "int", (M,), _as_integer),
    ("asApproximateFloat", True, "double", (M,), lambda value: _nanos(value) / _NANO),
    ("add", True, M, (M, M), lambda a, b: _tag_quantity(_nanos(a) + _nanos(b))),
    ("add", True, M, (M, "int"), lambda a, b: _tag_quantity(_nanos(a) + b * _NANO)),
    ("sub", True, M, (M, M), lambda a, b: _tag_quantity(_nanos(a) - _nanos(b))),
    ("sub", True, M, (M, "int"), lambda a, b: _tag_quantity(_nanos(a) - b * _NANO)),
    ("compareTo", True, "int", (M, M), _compare),
    ("isGreaterThan", True, "bool", (M, M), lambda a, b: _compare(a, b) > 0),
    ("isLessThan", True, "bool", (M, M), lambda a, b: _compare(a, b) < 0),
    ("isSemver", False, "bool", (S,), _is_semver),
    ("isSemver", False, "bool", (S, "bool"), _is_semver),
    ("semver", False, M, (S,), _semver),
    ("semver", False, M, (S, "bool"), _semver),
    ("major", True, "int", (M,), _semver_part(0)),
    ("minor", True, "int", (M,), _semver_part(1)),
    ("patch", True, "int", (M,), _semver_part(2)),
    ("isURL", False, "bool", (S,), _is_url),
    ("url", False, M, (S,), _url),
    ("getScheme", True, S, (M,), _url_part(lambda parts: str(parts.scheme))),
    ("getHost", True, S, (M,), _url_part(lambda parts: str(parts.netloc.rpartition("@")[2]))),
    ("getHostname", True, S, (M,), _url_part(_hostname)),
    ("getPort", True, S, (M,), _url_part(_port)),
    ("getEscapedPath", True, S, (M,), _url_part(lambda parts: quote(parts.path, safe="/%:@!$&'()*+,;=~-._"))),
    ("getQuery", True, "map(list(string))", (M,), _query),
    ("isIP", False, "bool", (S,), _is(_parse_ip)),
    ("ip", False, M, (S,), _tag_ip),
    ("ip", True, M, (M,), lambda value: {"ip": str(_cidr(value).ip)}),
    ("ip.isCanonical", False, "bool", (S,), lambda text: str(_parse_ip(text)) == text),
    ("family", True, "int", (M,), lambda value: _ip(value).version),
    ("isUnspecified", True, "bool", (M,), _test_ip(lambda address: address.is_unspecified)),
    ("isLoopback", True, "bool", (M,), _test_ip(lambda address: address.is_loopback)),
    ("isLinkLocalUnicast", True, "bool", (M,), _test_ip(lambda address: address.is_link_local)),
    ("isLinkLocalMulticast", True, "bool", (M,), _test_ip(_link_local_multicast)),
    ("isGlobalUnicast", True, "bool", (M,), _test_ip(_global_unicast)),
    ("isCIDR", False, "bool", (S,), _is(_parse_cidr)),
    ("cidr", False, M, (S,), _tag_cidr),
    ("containsIP", True, "bool", (M, M), _contains_ip),
    ("containsIP", True, "bool", (M, S), _contains_ip),
    ("containsCIDR", True, "bool", (M, M), _contains_cidr),
    ("containsCIDR", True, "bool", (M, S), _contains_cidr),
    ("prefixLength", True, "int", (M,), lambda value: _cidr(value).network.prefixlen),
    ("masked", True, M, (M,), lambda value: {"cidr": str(_cidr(value).network)}),
)  # fmt: skip
