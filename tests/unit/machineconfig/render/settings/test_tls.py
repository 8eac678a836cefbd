"""TLS profiles become what a kubelet reads, by names that it knows."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.settings.tls import GROUP_NUMBERS, IANA_NAMES, PROFILES, tls_settings

MODERN = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
INTERMEDIATE = [
    *MODERN,
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
]
OLD = [
    *INTERMEDIATE,
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
]


@pytest.mark.parametrize(
    ("profile", "version", "suites"),
    [
        (None, "VersionTLS12", INTERMEDIATE),
        ({}, "VersionTLS12", INTERMEDIATE),
        ({"type": "Old", "old": {}}, "VersionTLS10", OLD),
        ({"type": "Intermediate"}, "VersionTLS12", INTERMEDIATE),
        ({"type": "Modern", "modern": None}, "VersionTLS13", MODERN),
        ({"type": "Custom"}, "VersionTLS12", INTERMEDIATE),
        ({"type": "Custom", "custom": None}, "VersionTLS12", INTERMEDIATE),
    ],
)
def test_profiles_have_these_suites_in_this_order(profile: Any, version: str, suites: list[str]) -> None:
    made = tls_settings(profile)
    assert made.settings == {"tlsMinVersion": version, "tlsCipherSuites": suites}
    assert made.dropped == ()


def test_the_old_profile_has_twenty_one_suites() -> None:
    assert len(PROFILES["Old"][1]) == len(set(PROFILES["Old"][1])) == 21
    assert len(IANA_NAMES) == 22


def custom(*ciphers: str, **more: Any) -> dict[str, Any]:
    return {"type": "Custom", "custom": {"minTLSVersion": "VersionTLS12", "ciphers": list(ciphers), **more}}


def test_a_custom_profile_is_translated_in_its_own_order() -> None:
    made = tls_settings(custom("ECDHE-RSA-AES256-GCM-SHA384", "TLS_AES_128_GCM_SHA256", "ECDHE-RSA-DES-CBC3-SHA"))
    assert made.settings["tlsCipherSuites"] == [
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    ]


@pytest.mark.parametrize(
    "unknown",
    [
        "ECDHE-ECDSA-AES256-SHA384",
        "ECDHE-RSA-AES256-SHA384",
        "AES256-SHA256",
        "DHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "nonsense",
    ],
)
def test_a_name_that_has_no_translation_is_left_out_and_named(unknown: str) -> None:
    made = tls_settings(custom("AES128-SHA", unknown, "AES128-SHA"))
    assert made.settings["tlsCipherSuites"] == ["TLS_RSA_WITH_AES_128_CBC_SHA"]
    assert made.dropped == (unknown,)


def test_a_custom_profile_of_which_nothing_is_left_is_refused() -> None:
    """Without suites a kubelet takes its own defaults, which is more than was asked for."""
    with pytest.raises(BadSettings, match="a kubelet knows none of DHE-A, DHE-B"):
        tls_settings(custom("DHE-A", "DHE-B"))


def test_a_custom_profile_without_ciphers_leaves_them_to_the_kubelet() -> None:
    assert tls_settings(custom(minTLSVersion="VersionTLS13")).settings == {"tlsMinVersion": "VersionTLS13"}
    assert tls_settings(custom(minTLSVersion="")).settings == {"tlsMinVersion": "VersionTLS12"}


def test_groups_have_an_effect_where_their_gate_is_on() -> None:
    profile = custom("AES128-SHA", groups=["X25519MLKEM768", "secp384r1"])
    assert "tlsCurvePreferences" not in tls_settings(profile).settings
    assert tls_settings(profile, groups=True).settings["tlsCurvePreferences"] == [4588, 24]
    assert len(GROUP_NUMBERS) == len(set(GROUP_NUMBERS.values())) == 7


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(BadSettings, match=r"'Ancient' is not one of Old, Intermediate, Modern, Custom"):
        tls_settings({"type": "Ancient"})
