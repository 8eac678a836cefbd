"""Certificates of makers of TPMs: read from a ConfigMap, never trusted for standing there."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.attestation.evidence.roots import NOT_SIMULATED, SimulatedMaker, not_simulated
from fastness.crypto.errors import BadCertificate
from fastness.crypto.silicon.chains import load_certificates
from fastness.enrolment.live.tpm_makers import TpmMakers
from fastness.sim.tee.vendor import SimVendor

WORKS = SimVendor().tpm
DER = (WORKS.authority.certificate, WORKS.root.certificate)
PEM = ["".join(entry.pem.decode() for entry in load_certificates(der)) for der in DER]


class Maps:
    """A cache with one ConfigMap, which a test changes."""

    def __init__(self, data: dict[str, str] | None) -> None:
        self.data = data
        self.version = 1
        self.reads = 0

    def get(self, namespace: str, name: str) -> dict[str, Any] | None:
        assert (namespace, name) == ("fastness-system", "tpm-authorities")
        if self.data is None:
            return None
        return {"metadata": {"resourceVersion": str(self.version)}, "data": self.data}


def makers(maps: Maps) -> TpmMakers:
    return TpmMakers(maps)  # type: ignore[arg-type]  # all that is asked of an informer here


def test_every_certificate_of_every_value_is_found_and_what_is_none_is_left_out() -> None:
    maps = Maps({"one": PEM[0] + PEM[1], "broken": "-----BEGIN CERTIFICATE-----", "text": "hello"})
    assert [entry.der for entry in makers(maps).certificates()] == list(DER)


def test_without_a_config_map_there_are_none_and_a_change_is_seen() -> None:
    maps = Maps(None)
    tpm_makers = makers(maps)
    assert tpm_makers.certificates() == ()
    maps.data = {"one": PEM[0]}
    first = tpm_makers.certificates()
    assert len(first) == 1
    assert tpm_makers.certificates() is first
    maps.data, maps.version = {"one": PEM[0], "two": PEM[1]}, 2
    assert len(tpm_makers.certificates()) == 2
    maps.data = None
    assert tpm_makers.certificates() == ()


def test_a_simulated_maker_brings_pins_and_certificates_and_the_default_none() -> None:
    maker = SimulatedMaker.of(frozenset({"a"}), *DER)
    assert (maker.pins, len(maker.certificates)) == (frozenset({"a"}), 2)
    assert not_simulated() is NOT_SIMULATED
    assert SimulatedMaker() == NOT_SIMULATED
    with pytest.raises(BadCertificate):
        SimulatedMaker.of(frozenset(), b"junk")
