"""TLS of the kubelet's listener: a profile, as the two or three settings that a kubelet reads.

Profiles name cipher suites as OpenSSL does, a kubelet knows IANA's names, and one name that it does not know keeps it from
starting, on every machine of a pool. So every profile is translated, a custom one too. What Go's TLS does not have has no
translation: those suites are left out, and whoever asked for them is told. TLS 1.3 has the same names in both worlds.

Order is the profile's. Groups for the exchange of keys become Go's numbers of them (RFC 8446, 4.2.7, and IANA's registry).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.errors import BadSettings

Object = Mapping[str, Any]
OLD: Final = "Old"
INTERMEDIATE: Final = "Intermediate"
MODERN: Final = "Modern"
CUSTOM: Final = "Custom"


def _suites(openssl: str, iana: str) -> dict[str, str]:
    """The same suite with both kinds of certificate, ECDSA first."""
    return {f"ECDHE-{key}-{openssl}": f"TLS_ECDHE_{key}_WITH_{iana}" for key in ("ECDSA", "RSA")}


_TLS13: Final = {
    name: name for name in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
}
_AHEAD: Final = {
    **_suites("AES128-GCM-SHA256", "AES_128_GCM_SHA256"),
    **_suites("AES256-GCM-SHA384", "AES_256_GCM_SHA384"),
    **_suites("CHACHA20-POLY1305", "CHACHA20_POLY1305_SHA256"),
}
_BEHIND: Final = {
    **_suites("AES128-SHA256", "AES_128_CBC_SHA256"),
    **_suites("AES128-SHA", "AES_128_CBC_SHA"),
    **_suites("AES256-SHA", "AES_256_CBC_SHA"),
    "AES128-GCM-SHA256": "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "AES256-GCM-SHA384": "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "AES128-SHA256": "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "AES128-SHA": "TLS_RSA_WITH_AES_128_CBC_SHA",
    "AES256-SHA": "TLS_RSA_WITH_AES_256_CBC_SHA",
    "DES-CBC3-SHA": "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
}
IANA_NAMES: Final[Mapping[str, str]] = {
    **_TLS13, **_AHEAD, **_BEHIND, "ECDHE-RSA-DES-CBC3-SHA": "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
}  # fmt: skip
PROFILES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    OLD: ("VersionTLS10", (*_TLS13.values(), *_AHEAD.values(), *_BEHIND.values())),
    INTERMEDIATE: ("VersionTLS12", (*_TLS13.values(), *_AHEAD.values())),
    MODERN: ("VersionTLS13", tuple(_TLS13.values())),
}
_AS_OPENSSL: Final = "name suites as OpenSSL does, for example ECDHE-RSA-AES128-GCM-SHA256"
GROUP_NUMBERS: Final[Mapping[str, int]] = {
    "secp256r1": 23, "secp384r1": 24, "secp521r1": 25, "X25519": 29,
    "SecP256r1MLKEM768": 4587, "X25519MLKEM768": 4588, "SecP384r1MLKEM1024": 4589,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """What a kubelet is told, and the names of a custom profile that it was not told, because it would not know them."""

    settings: JsonObject
    dropped: tuple[str, ...] = ()


def tls_settings(profile: Object | None, *, groups: bool = False) -> TlsSettings:
    """The settings of a profile, Intermediate where there is none; raises BadSettings.

    `groups` says whether the gate for groups is on; without it they are accepted and have no effect.
    """
    kind = (profile or {}).get("type") or INTERMEDIATE
    custom = (profile or {}).get("custom") if kind == CUSTOM else None
    if kind == CUSTOM and not custom:
        kind = INTERMEDIATE
    if kind in PROFILES:
        version, suites = PROFILES[kind]
        return TlsSettings({"tlsMinVersion": version, "tlsCipherSuites": list(suites)})
    if kind != CUSTOM:
        names = ", ".join((*PROFILES, CUSTOM))
        raise BadSettings(f"tlsSecurityProfile.type {kind!r} is not one of {names}", "name one of them")
    return _custom(custom or {}, groups)


def _custom(custom: Object, groups: bool) -> TlsSettings:
    names = list(dict.fromkeys(str(name) for name in custom.get("ciphers") or ()))
    suites = [IANA_NAMES[name] for name in names if name in IANA_NAMES]
    dropped = tuple(name for name in names if name not in IANA_NAMES)
    if names and not suites:
        # An empty list means the kubelet's own defaults to a kubelet: more than was asked for.
        raise BadSettings(
            f"tlsSecurityProfile.custom.ciphers: a kubelet knows none of {', '.join(names[:8])}; {_AS_OPENSSL}",
            _AS_OPENSSL,
        )
    settings: JsonObject = {"tlsMinVersion": custom.get("minTLSVersion") or PROFILES[INTERMEDIATE][0]}
    if suites:
        settings["tlsCipherSuites"] = suites
    numbers = [GROUP_NUMBERS[name] for name in custom.get("groups") or () if name in GROUP_NUMBERS]
    if numbers and groups:
        settings["tlsCurvePreferences"] = numbers
    return TlsSettings(settings, dropped)
