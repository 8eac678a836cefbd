"""Formats of strings, with the meaning an API server gives them.

Only the formats listed here are judged; any other name says nothing, as in Kubernetes. Each entry decides whether a text is of
the format, by the rules of the Go functions that Kubernetes uses rather than by the JSON Schema formats of the same name.
`parse_duration` is public because rules see a `duration` field as a duration.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

Check = Callable[[str], bool]

_HEX: Final = "[0-9a-fA-F]"
_NANO: Final[Mapping[str, int]] = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_GO_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_WORD_PART: Final = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_DAY: Final = 24 * 3600 * 10**9
# (exact names, the name that also counts as a beginning, nanoseconds)
_WORDS: Final[tuple[tuple[tuple[str, ...], str, int], ...]] = (
    (("ns",), "nano", 1), (("us", "µs"), "micro", 1_000), (("ms",), "milli", 1_000_000), (("s",), "sec", 10**9),
    (("m",), "min", 60 * 10**9), (("h", "hr"), "hour", 3600 * 10**9), (("d",), "day", _DAY), (("w", "wk"), "week", 7 * _DAY),
)  # fmt: skip
_MAX_NANO: Final = 2**63


def parse_duration(text: str) -> int | None:
    """Nanoseconds of `1h30m` as Go writes it, or of `3 days` as Kubernetes also reads it; None when it is neither."""
    exact = _go_duration(text)
    if exact is not None:
        return exact
    total, any_unit = 0, False
    for count, word in _WORD_PART.findall(text):
        unit = word.lower()
        for names, stem, nano in _WORDS:
            if unit in names or unit.startswith(stem):
                total, any_unit = total + int(count) * nano, True
    return total if any_unit and abs(total) < _MAX_NANO else None


def _go_duration(text: str) -> int | None:
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total, at = Decimal(0), 0
    for part in _GO_PART.finditer(rest):
        if part.start() != at:
            return None
        total, at = total + Decimal(part[1]) * _NANO[part[2]], part.end()
    if at == 0 or at != len(rest) or total >= _MAX_NANO:
        return None
    return sign * int(total)


def _is_date(text: str) -> bool:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is None:
        return False
    try:
        # Go accepts the year 0, Python does not; 2000 is a leap year as well
        dt.date.fromisoformat("2000" + text[4:] if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


_TIME: Final = re.compile(r"(\d{2}):(\d{2}):(\d{2})(.\d+)?(z|[+-]\d{2}:\d{2})", re.ASCII)


@lru_cache(maxsize=4096)
def _is_date_time(text: str) -> bool:
    day, separator, rest = text.lower().partition("t")
    time = _TIME.fullmatch(rest.split("t")[0]) if separator else None
    return time is not None and _is_date(day) and time[1] <= "23" and time[2] <= "59" and time[3] <= "59"


def _is_ip(text: str, version: int) -> bool:
    try:
        return version == (4 if "." in text and ":" not in text else 6) and bool(_address(text))
    except ValueError:
        return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if "%" in text:
        raise ValueError("a zone is not part of an address")
    if ":" not in text:
        # Kubernetes still reads leading zeros, as decimal
        text = ".".join(str(int(p)) if p.isascii() and p.isdigit() and len(p) < 10 else p for p in text.split("."))
    return ipaddress.ip_address(text)


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or re.fullmatch(r"\d{1,3}", length, re.ASCII) is None:
        return False
    try:
        return int(length) <= _address(address).max_prefixlen
    except ValueError:
        return False


def _is_request_uri(text: str) -> bool:
    if re.search(r"[\x00-\x20\x7f]", text) or re.search(r"%(?![0-9a-fA-F]{2})", text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme:
        return bool(parts.netloc or parts.path)
    return text.startswith("/")


_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\x80-\U0010ffff-]+"
_EMAIL: Final = re.compile(rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\r\n]|\\.)+")@(?:{_ATOM}(?:\.{_ATOM})*|\[[^\[\]\\]+\])')


def _is_email(text: str) -> bool:
    named = re.fullmatch(r"[^<>@]*<([^<>]+)>\s*", text)
    return _EMAIL.fullmatch((named[1] if named else text).strip()) is not None


_LABEL: Final = re.compile(r"[^\W_](?:[^\W_]|-){0,61}[^\W_]|[^\W_]")


def _is_hostname(text: str) -> bool:
    if len(text) > 255 or not text:
        return False
    labels = text.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        return False
    return len(labels) == 1 or re.fullmatch(r"[^\W\d_]{2,63}", labels[-1]) is not None


_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_MAC: Final = re.compile(rf"(?:{_HEX}{{2}}([:-]))(?:{_HEX}{{2}}\1)*{_HEX}{{2}}|{_HEX}{{4}}(?:\.{_HEX}{{4}})+")
_MAC_BYTES: Final = frozenset({6, 8, 20})


def _is_mac(text: str) -> bool:
    return _MAC.fullmatch(text) is not None and len(re.findall(_HEX, text)) // 2 in _MAC_BYTES


def _is_isbn(text: str, length: int) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if length == 10:
        if re.fullmatch(r"\d{9}[\dX]", digits, re.ASCII) is None:
            return False
        return sum((i + 1) * (10 if d == "X" else int(d)) for i, d in enumerate(digits)) % 11 == 0
    if re.fullmatch(r"\d{13}", digits, re.ASCII) is None:
        return False
    return sum((3 if i % 2 else 1) * int(d) for i, d in enumerate(digits)) % 10 == 0


_CARD: Final = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|6(?:011|5\d\d)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}|6[27]\d{14}",
    re.ASCII,
)


def _is_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _of(pattern: str, longest: int | None = None) -> Check:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None and (longest is None or len(text) <= longest)


_BYTE: Final = r"(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_SHORT: Final = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"

CHECKS: Final[Mapping[str, Check]] = {
    "bsonobjectid": _of(rf"{_HEX}{{24}}"),
    "uri": _is_request_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_ip(text, 4),
    "ipv6": lambda text: _is_ip(text, 6),
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _of(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid3": _of(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid4": _of(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uuid5": _of(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "isbn": lambda text: _is_isbn(text, 10) or _is_isbn(text, 13),
    "isbn10": lambda text: _is_isbn(text, 10),
    "isbn13": lambda text: _is_isbn(text, 13),
    "creditcard": _is_card,
    "ssn": _of(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _of(rf"#?(?:{_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _of(rf"rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)"),
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
    "password": lambda _: True,
    "date": _is_date,
    "duration": lambda text: parse_duration(text) is not None,
    "datetime": _is_date_time,
    "k8sshortname": _of(_SHORT, 63),
    "k8slongname": _of(rf"{_SHORT}(?:\.{_SHORT})*", 253),
}  # fmt: skip


def check_of(name: str) -> Check | None:
    """The check of a format; dashes in its name do not count."""
    return CHECKS.get(name.replace("-", ""))
