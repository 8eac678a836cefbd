"""SNP reports and TDX quotes: exact sizes, known versions, lengths that add up, and wrappings."""

from __future__ import annotations

import base64
import json
import struct

import pytest

from fastness.crypto.silicon.chains import extension_values, load_certificates
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.snp.envelope import parse_evidence as parse_snp
from fastness.formats.evidence.snp.report import SigningKey, parse_report
from fastness.formats.evidence.snp.tcb import Generation, Tcb, generation_of_cpu, read_tcb
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.formats.evidence.tdx.pck import read_pck
from fastness.formats.evidence.tdx.quote import parse_evidence as parse_tdx
from fastness.formats.evidence.tdx.quote import parse_quote
from tests.evidence.snp import Chip
from tests.evidence.tdx import FMSPC, SGX, Platform

CHIP = Chip()
PLATFORM = Platform()


def refusal(parse: object, data: bytes) -> str:
    with pytest.raises(EvidenceError) as caught:
        parse(data)  # type: ignore[operator]
    assert caught.value.hint
    return caught.value.code


def test_a_report_reads_field_by_field() -> None:
    report = parse_report(CHIP.report(3, nonce=b"n", vmpl=2))
    assert (report.version, report.vmpl, report.signing_key) == (3, 2, SigningKey.VCEK)
    assert report.report_data == b"n".ljust(64, b"\0")
    assert report.measurement == bytes(range(48))
    assert report.generation is Generation.MILAN
    assert parse_report(CHIP.report(2)).generation is None


@pytest.mark.parametrize("size", [0, 1183, 1185, 2368])
def test_a_report_has_exactly_its_size(size: int) -> None:
    assert refusal(parse_report, bytes(size)) == "bad-size"


@pytest.mark.parametrize("version", [0, 1, 6, 0xFFFFFFFF])
def test_unknown_report_versions_are_refused(version: int) -> None:
    assert refusal(parse_report, struct.pack("<I", version) + CHIP.report()[4:]) == "unknown-version"


@pytest.mark.parametrize("place", [0x2A0 + 48, 0x2A0 + 71, 0x2A0 + 72 + 48, 0x2A0 + 144, 0x49F])
def test_unused_bytes_of_the_signature_are_zero(place: int) -> None:
    data = bytearray(CHIP.report())
    data[place] = 1
    assert refusal(parse_report, bytes(data)) == "bad-signature-field"


def test_a_tcb_version_has_the_layout_of_its_generation() -> None:
    raw = bytes([1, 2, 3, 4, 5, 6, 7, 8])
    assert read_tcb(raw, Generation.GENOA) == Tcb(bootloader=1, tee=2, snp=7, microcode=8)
    assert read_tcb(raw, Generation.TURIN) == Tcb(fmc=1, bootloader=2, tee=3, snp=4, microcode=8)
    assert Tcb(1, 2, 3, 4).behind(Tcb(1, 3, 2, 5)) == ["tee", "microcode"]
    assert Tcb(1, 2, 3, 4).behind(Tcb(1, 2, 3, 4, fmc=0)) == ["fmc"]


@pytest.mark.parametrize(
    ("family", "model", "generation"),
    [
        (0x19, 0x00, "Milan"), (0x19, 0x0F, "Milan"), (0x19, 0x11, "Genoa"), (0x19, 0xA0, "Genoa"), (0x1A, 0x02, "Turin"),
        (0x19, 0x20, None), (0x1A, 0x50, None), (0x17, 0x01, None),
    ],
)  # fmt: skip
def test_processors_belong_to_generations(family: int, model: int, generation: str | None) -> None:
    assert generation_of_cpu(family, model) == generation


def test_a_report_that_is_spelled_field_by_field_is_refused() -> None:
    assert refusal(parse_snp, b'{"attestation_report": {"version": 2}}') == "decoded-report"
    text = base64.b64encode(CHIP.report()).decode()
    chain = [{"cert_type": "VCEK", "data": base64.b64encode(b"der").decode()}]
    evidence = parse_snp(json.dumps({"attestation_report": text, "cert_chain": chain}).encode())
    assert evidence.certificates == (b"der",)
    assert (
        refusal(parse_snp, json.dumps({"attestation_report": text, "cert_chain": [{}] * 17}).encode()) == "bad-envelope"
    )


@pytest.mark.parametrize("version", [4, 5])
def test_every_prefix_of_a_quote_is_refused(version: int) -> None:
    data = PLATFORM.quote(version, chain=b"pem")
    parse_quote(data)
    for end in range(len(data)):
        assert refusal(parse_quote, data[:end]) == "cut-off"


def test_only_zeros_may_follow_a_quote() -> None:
    assert parse_quote(PLATFORM.quote(tail=bytes(70))).pck_chain == parse_quote(PLATFORM.quote()).pck_chain
    assert refusal(parse_quote, PLATFORM.quote(tail=bytes(69) + b"\x01")) == "trailing-bytes"


def test_other_quotes_are_refused_by_name() -> None:
    data = PLATFORM.quote()
    assert refusal(parse_quote, b"\x03\x00" + data[2:]) == "unknown-version"
    assert refusal(parse_quote, data[:2] + b"\x03\x00" + data[4:]) == "unknown-key"
    assert refusal(parse_quote, data[:4] + bytes(4) + data[8:]) == "not-tdx"
    assert refusal(parse_quote, PLATFORM.quote(5, body_type=2)) == "bad-body"
    assert refusal(parse_quote, data + bytes(16 * 1024)) == "too-long"


def test_quotes_come_in_json_with_their_log() -> None:
    value = {"quote": base64.b64encode(PLATFORM.quote()).decode(), "cc_eventlog": base64.b64encode(b"log").decode()}
    assert parse_tdx(json.dumps(value).encode()).event_log == b"log"
    assert parse_tdx(json.dumps({**value, "cc_eventlog": None}).encode()).event_log == b""
    assert refusal(parse_tdx, json.dumps({**value, "more": 1}).encode()) == "unknown-member"


def test_a_platform_certificate_names_its_platform() -> None:
    (leaf, *_) = load_certificates(parse_quote(PLATFORM.quote()).pck_chain)
    pck = read_pck(extension_values(leaf)[SGX])
    assert (pck.fmspc, pck.components, pck.pce_svn) == (FMSPC, PLATFORM.components, 13)
    assert pck.configuration == {"is_dynamic_platform": True, "is_cached_keys": False, "is_smt_enabled": True}
    assert refusal(read_pck, extension_values(leaf)[SGX] + b"\x05\x00") == "bad-extension"


@pytest.mark.parametrize(
    "change",
    [
        {"tcb_info": ""}, {"tcb_info": "[]"}, {"tcb_info": '{"id": 5}'}, {"tcb_info_signature": "zz"},
        {"qe_identity_signature": "00"}, {"pck_crl": 7},
    ],
)  # fmt: skip
def test_collateral_of_another_shape_is_refused(change: dict[str, object]) -> None:
    value = json.loads(PLATFORM.collateral())
    assert refusal(parse_collateral, json.dumps({**value, **change}).encode()) == "bad-collateral"


def test_fifteen_components_are_not_sixteen() -> None:
    info = PLATFORM.tcb_info()
    info["tcbLevels"][0]["tcb"]["tdxtcbcomponents"].pop()
    assert refusal(parse_collateral, PLATFORM.collateral(info)) == "bad-collateral"
