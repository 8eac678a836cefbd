"""`fastness attest verify` on real evidence made by others gives what is known to be true of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.cli.trust.attest import UNSUPPORTED
from fastness.crypto.silicon.chains import chain_to_pin, extension_values, issuer_name, load_certificates
from fastness.crypto.silicon.pins import AMD_ROOTS
from fastness.formats.evidence.snp.vek import read_vek
from tests.evidence.vectors import vectors

JUNE = "2025-06-25T00:00:00Z"
NONCE = (
    "a04182b506878d4f29b91ee606a71a0d3361ccf1b22db20c98adcaa537bea393ef0e41a18b3569ab678f1497fbc5c120"
    "00000000000000000000000000000000"
)


def verify(*arguments: str | Path) -> Result:
    """Evidence of others was made for challenges that nobody knows any more: where none is given, that is allowed for."""
    words = [str(argument) for argument in arguments]
    freshness = any(argument.startswith(("--nonce", "--allow")) for argument in words)
    return CliRunner().invoke(cli, ["attest", "verify", *words, *([] if freshness else ["--allow", "freshness"])])


def verdict(*arguments: str | Path) -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    result = verify(*arguments, "-o", "json")
    report: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, report, {check["name"]: check for check in report["checks"]}


@pytest.fixture
def tdx() -> Path:
    return vectors() / "tdx"


@pytest.fixture
def snp() -> Path:
    return vectors() / "snp"


@pytest.fixture
def roots() -> Path:
    return vectors() / "roots"


@pytest.fixture
def quote() -> Path:
    return vectors() / "tpm" / "raw-tpm-evidence.json"


def test_an_up_to_date_tdx_quote_is_accepted_while_its_collateral_is_current(tdx: Path) -> None:
    collateral = tdx / "v4-uptodate.collateral.json"
    code, report, checks = verdict("--tee", "tdx", tdx / "v4-uptodate.quote", "--collateral", collateral, "--at", JUNE)
    assert (code, report["authentic"], report["acceptable"], report["reason"]) == (0, True, True, "")
    assert report["claims"]["tdx"]["tcb_status"] == "UpToDate"
    assert report["claims"]["tdx"]["fmspc"] == "b0c06f000000"
    assert report["identity"] == {"kind": "platform-instance", "value": "07828474603e7019dc930775ffe8cdd2"}
    assert checks["second-opinion"]["seen"] == "UpToDate"
    assert checks["nonce"]["result"] == "NotAssessed"


@pytest.mark.parametrize(
    ("at", "reason"),
    [("2025-08-01T00:00:00Z", "collateral-expired"), ("2025-06-01T00:00:00Z", "collateral-from-the-future")],
)
def test_collateral_outside_its_dates_refuses_an_authentic_quote(tdx: Path, at: str, reason: str) -> None:
    collateral = tdx / "v4-uptodate.collateral.json"
    code, report, _ = verdict("--tee", "tdx", tdx / "v4-uptodate.quote", "--collateral", collateral, "--at", at)
    assert (code, report["authentic"], report["acceptable"], report["reason"]) == (1, True, False, reason)


def test_a_platform_below_every_level_is_refused_and_the_component_named(tdx: Path) -> None:
    collateral = tdx / "v5-outdated.collateral.json"
    code, report, checks = verdict(
        "--tee", "tdx", tdx / "v5-outdated.quote", "--collateral", collateral, "--at", "2026-03-01T00:00:00Z"
    )
    assert (code, report["authentic"], report["reason"]) == (1, True, "tcb-no-level")
    assert "SGX component 8 (OS/VMM, SEAMLDR ACM): 3, needs 5" in checks["tcb-status"]["seen"]
    assert checks["second-opinion"]["result"] == "Pass"


def test_a_debug_domain_is_refused_although_its_chain_is_good(tdx: Path) -> None:
    code, report, checks = verdict("--tee", "tdx", tdx / "v4-debug-td.quote", "--at", JUNE)
    assert (code, report["authentic"], report["reason"]) == (1, True, "debug-allowed")
    assert checks["certificate-chain"]["result"] == "Pass"


def test_without_collateral_a_tdx_quote_gets_no_grant(tdx: Path) -> None:
    code, report, checks = verdict("--tee", "tdx", tdx / "v5-no-collateral.quote")
    assert (code, report["authentic"], report["acceptable"]) == (1, True, False)
    assert checks["tcb-status"]["result"] == "NotAssessed"
    assert checks["tcb-status"]["code"] == "collateral-missing"


def test_collateral_of_another_platform_is_refused(tdx: Path) -> None:
    collateral = tdx / "v5-outdated.collateral.json"
    code, _, checks = verdict(
        "--tee", "tdx", tdx / "v4-uptodate.quote", "--collateral", collateral, "--at", "2026-03-01T00:00:00Z"
    )
    assert code == 1
    assert checks["tcb-info-scope"]["code"] == "collateral-of-another-platform"


def test_collateral_that_was_edited_is_refused(tdx: Path, tmp_path: Path) -> None:
    value = json.loads((tdx / "v4-uptodate.collateral.json").read_text())
    value["tcb_info"] = value["tcb_info"].replace('"svn":5', '"svn":0', 1)
    edited = tmp_path / "collateral.json"
    edited.write_text(json.dumps(value))
    code, _, checks = verdict("--tee", "tdx", tdx / "v4-uptodate.quote", "--collateral", edited, "--at", JUNE)
    assert code == 1
    assert checks["tcb-info-signature"]["code"] == "tcb-info-unsigned"


def test_unusable_collateral_refuses(tdx: Path, tmp_path: Path) -> None:
    broken = tmp_path / "collateral.json"
    broken.write_text('{"tcb_info": "{}"}')
    code, report, _ = verdict("--tee", "tdx", tdx / "v4-uptodate.quote", "--collateral", broken, "--at", JUNE)
    assert (code, report["reason"]) == (1, "collateral-unusable")


def test_zero_bytes_may_follow_a_quote_and_others_may_not(tdx: Path, tmp_path: Path) -> None:
    real = (tdx / "v4-uptodate.quote").read_bytes()
    assert real.endswith(bytes(70))
    padded, spoiled = tmp_path / "padded", tmp_path / "spoiled"
    padded.write_bytes(real + bytes(30))
    spoiled.write_bytes(real[:-1] + b"\x01")
    collateral = tdx / "v4-uptodate.collateral.json"
    assert verify("--tee", "tdx", padded, "--collateral", collateral, "--at", JUNE).exit_code == 0
    refused = verify("--tee", "tdx", spoiled, "--collateral", collateral, "--at", JUNE)
    assert refused.exit_code == 2
    assert "trailing-bytes" in refused.stderr


def test_an_snp_report_verifies_with_its_chips_certificate(snp: Path, roots: Path) -> None:
    code, report, _ = verdict(
        "--tee", "snp", snp / "v2-milan.report", "--cert", snp / "v2-milan.vcek.der", "--roots", roots, "--at", JUNE
    )
    assert (code, report["authentic"], report["acceptable"]) == (0, True, True)
    assert report["claims"]["snp"]["reported_tcb_microcode"] == 0x73
    assert report["identity"]["kind"] == "chip"
    assert report["identity"]["value"].startswith("c38427a30d4c7af9")


def test_a_damaged_endorsement_certificate_is_refused(snp: Path, roots: Path) -> None:
    code, report, _ = verdict(
        "--tee", "snp", snp / "v2-milan.report", "--cert", snp / "v2-milan.vcek-corrupt.der", "--roots", roots
    )
    assert (code, report["authentic"], report["identity"]) == (1, False, None)


@pytest.mark.parametrize("cert", ["turin.vcek.der", "v3-milan.vlek.der"])
def test_another_chips_or_another_kind_of_certificate_is_refused(snp: Path, roots: Path, cert: str) -> None:
    code, report, _ = verdict(
        "--tee", "snp", snp / "v2-milan.report", "--cert", snp / cert, "--roots", roots, "--at", JUNE
    )
    assert (code, report["authentic"]) == (1, False)


def test_the_right_certificate_is_found_among_others(snp: Path, roots: Path) -> None:
    others: list[str | Path] = [
        "--cert",
        snp / "v2-milan.vcek-corrupt.der",
        "--cert",
        snp / "turin.vcek.der",
        "--cert",
        snp / "v3-milan.vlek.der",
    ]
    code, report, _ = verdict(
        "--tee",
        "snp",
        snp / "v2-milan.report",
        *others,
        "--cert",
        snp / "v2-milan.vcek.der",
        "--roots",
        roots,
        "--at",
        JUNE,
    )
    assert (code, report["acceptable"]) == (0, True)


def test_a_turin_certificate_has_a_short_chip_id_and_a_good_chain(snp: Path, roots: Path) -> None:
    (leaf,) = load_certificates((snp / "turin.vcek.der").read_bytes())
    vek = read_vek(issuer_name(leaf), extension_values(leaf))
    assert vek is not None
    assert (vek.generation, len(vek.hardware_id), vek.tcb.fmc) == ("Turin", 8, 0)
    pool = load_certificates((roots / "amd-turin-ask-ark-asvk.pem").read_bytes())
    assert len(chain_to_pin(leaf, pool, [AMD_ROOTS["Turin"]])) == 3


def test_a_vlek_report_is_authentic_and_refused_for_its_privilege_level(snp: Path, roots: Path) -> None:
    code, report, checks = verdict(
        "--tee", "snp", snp / "v3-milan-vlek-vmpl1.report", "--cert", snp / "v3-milan.vlek.der", "--roots", roots,
        "--at", JUNE,
    )  # fmt: skip
    assert (code, report["authentic"], report["reason"]) == (1, True, "vmpl-differs")
    assert checks["certificate-dates"]["result"] == "Pass"
    assert report["identity"] == {"kind": "cloud-provider", "value": "CN=cc-us-east-2.amazonaws.com"}


def test_an_expired_vlek_is_told(snp: Path, roots: Path) -> None:
    code, report, checks = verdict(
        "--tee", "snp", snp / "v3-milan-vlek-vmpl1.report", "--cert", snp / "v3-milan.vlek.der", "--roots", roots,
        "--at", "2026-01-01T00:00:00Z",
    )  # fmt: skip
    assert (code, report["authentic"]) == (1, True)
    assert "expired at 2025-12-10" in checks["certificate-dates"]["seen"]


def test_without_the_vendors_certificates_an_snp_report_is_not_proven(snp: Path) -> None:
    code, report, checks = verdict("--tee", "snp", snp / "v2-milan.report", "--cert", snp / "v2-milan.vcek.der")
    assert (code, report["authentic"]) == (1, False)
    assert checks["certificate-chain"]["result"] == "NotAssessed"


def test_the_chain_of_another_generation_does_not_help(snp: Path, roots: Path) -> None:
    code, report, _ = verdict(
        "--tee", "snp", snp / "v2-milan.report", "--cert", snp / "v2-milan.vcek.der",
        "--cert", roots / "amd-genoa-ask-ark-asvk.pem",
    )  # fmt: skip
    assert (code, report["authentic"]) == (1, False)


def own_key(quote: Path, directory: Path) -> Path:
    """The key that made the quote, as somebody who enrolled it has it."""
    path = directory / "ak.der"
    path.write_bytes(base64.b64decode(json.loads(quote.read_text())["ak_public"]))
    return path


def test_a_quote_on_the_word_of_its_own_key_is_refused_until_that_is_allowed(quote: Path) -> None:
    code, report, checks = verdict("--tee", "tpm", quote, "--nonce", NONCE)
    assert (code, report["authentic"], report["acceptable"], report["reason"]) == (
        1,
        False,
        False,
        "endorsement-not-proved",
    )
    assert report["proved"] == {"signature": True, "endorsement": False, "freshness": True}
    assert report["identity"] is None
    assert checks["attestation-key"]["result"] == "NotAssessed"
    code, report, checks = verdict("--tee", "tpm", quote, "--nonce", NONCE, "--allow", "endorsement")
    assert (code, report["authentic"], report["acceptable"]) == (0, False, True)
    assert len([name for name in report["claims"]["tpm"] if name.startswith("pcr")]) == 24
    assert checks["hardware"]["code"] == "memory-not-protected"
    text = verify("--tee", "tpm", quote, "--nonce", NONCE).stdout
    assert "signature proved, endorsement NOT proved, freshness proved" in text
    assert "accepted" not in text


def test_a_quote_without_its_challenge_is_refused_until_that_is_allowed(quote: Path, tmp_path: Path) -> None:
    key = own_key(quote, tmp_path)
    strict = CliRunner().invoke(cli, ["attest", "verify", "--tee", "tpm", str(quote), "--ak", str(key)])
    assert strict.exit_code == 1
    assert "refused (freshness-not-proved)" in strict.stdout
    assert verdict("--tee", "tpm", quote, "--ak", key, "--allow", "freshness")[0] == 0
    assert verdict("--tee", "tpm", quote, "--ak", key, "--nonce", NONCE)[0] == 0
    assert verify("--tee", "tpm", quote, "--allow", "signature").exit_code == 2


@pytest.mark.parametrize("option", ["--cert", "--roots"])
def test_certificates_do_not_take_the_place_of_the_enrolled_key(
    quote: Path, roots: Path, snp: Path, option: str
) -> None:
    given = snp / "v2-milan.vcek.der" if option == "--cert" else roots
    refused = verify("--tee", "tpm", quote, option, given)
    assert refused.exit_code == 2
    assert "credential activation" in refused.stderr


def test_a_tpm_quote_answers_its_nonce_and_no_other(quote: Path, tmp_path: Path) -> None:
    key = own_key(quote, tmp_path)
    assert verdict("--tee", "tpm", quote, "--ak", key, "--nonce", NONCE)[0] == 0
    for other in ("00" + NONCE[2:], NONCE[:-2], NONCE + "00", ""):
        code, report, _ = verdict("--tee", "tpm", quote, "--ak", key, "--nonce", other)
        assert (code, report["reason"]) == (1, "nonce-differs")
    assert verdict("--tee", "tpm", quote, "--ak", key, "--nonce-text", "challenge")[0] == 1


def test_a_tpm_quote_of_another_key_is_refused(quote: Path, tmp_path: Path) -> None:
    code, report, checks = verdict("--tee", "tpm", quote, "--ak", own_key(quote, tmp_path))
    assert (code, report["authentic"], checks["attestation-key"]["result"]) == (0, True, "Pass")
    code, report, _ = verdict("--tee", "tpm", quote, "--ak", vectors() / "tpm" / "akpub.pem")
    assert (code, report["authentic"], report["reason"]) == (1, False, "key-differs")


def test_a_changed_register_value_is_refused(quote: Path, tmp_path: Path) -> None:
    value = json.loads(quote.read_text())
    value["tpm_quote"]["pcrs"][11] = "11" * 32
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(value))
    code, report, _ = verdict("--tee", "tpm", changed)
    assert (code, report["reason"]) == (1, "register-digest-differs")


def test_a_foreign_event_log_is_refused_register_by_register(quote: Path) -> None:
    log = vectors() / "eventlog" / "uefi-measured-boot.b64"
    code, report, checks = verdict("--tee", "tpm", quote, "--event-log", log)
    assert (code, report["reason"]) == (1, "event-log-differs")
    assert checks["event-log PCR 4"]["result"] == "Fail"
    assert not any(event["verified"] for event in report["claims"]["tpm"]["uefi_event_logs"])


def test_a_log_of_another_domain_is_refused(tdx: Path) -> None:
    log = vectors() / "eventlog" / "CCEL_data_ovmf"
    code, report, checks = verdict(
        "--tee", "tdx", tdx / "v4-uptodate.quote", "--collateral", tdx / "v4-uptodate.collateral.json", "--at", JUNE,
        "--event-log", log,
    )  # fmt: skip
    assert (code, report["reason"]) == (1, "event-log-differs")
    assert checks["event-log RTMR 0"]["result"] == "Fail"


@pytest.mark.parametrize("dress", ["hex", "base64", "json"])
def test_dresses_do_not_change_the_verdict(tdx: Path, tmp_path: Path, dress: str) -> None:
    raw = (tdx / "v4-uptodate.quote").read_bytes()
    text = base64.b64encode(raw).decode()
    dressed = tmp_path / "quote"
    dressed.write_text({"hex": raw.hex() + "\n", "base64": text, "json": json.dumps({"quote": text})}[dress])
    collateral = tdx / "v4-uptodate.collateral.json"
    assert verify("--tee", "tdx", dressed, "--collateral", collateral, "--at", JUNE).exit_code == 0


@pytest.mark.parametrize("tee", UNSUPPORTED)
def test_known_tees_without_a_verifier_are_refused_with_what_is_missing(quote: Path, tee: str) -> None:
    result = verify("--tee", tee, quote)
    assert result.exit_code == 1
    assert f"evidence of {tee} is refused: what is missing is" in result.stderr


def test_unreadable_evidence_and_wrong_use_exit_with_2(quote: Path, tmp_path: Path) -> None:
    for content in (b"", b"{}", b"nonsense", bytes(1184), b"\xffTCG" + bytes(100), b"x" * 3_000_000):
        path = tmp_path / "evidence"
        path.write_bytes(content)
        for tee in ("tdx", "snp", "tpm"):
            assert verify("--tee", tee, path).exit_code == 2, (tee, content[:20])
    for wrong in (
        ["--nonce", "xy"],
        ["--at", "noon"],
        ["--at", "2025-01-01T00:00:00"],
        ["--nonce", "00", "--nonce-text", "a"],
    ):
        assert verify("--tee", "tpm", quote, *wrong).exit_code == 2
    assert verify("--tee", "toaster", quote).exit_code == 2


def test_an_unusable_certificate_refuses(snp: Path, roots: Path, tmp_path: Path) -> None:
    broken = tmp_path / "vcek.der"
    broken.write_bytes((snp / "v2-milan.vcek.der").read_bytes()[:-1])
    code, report, _ = verdict("--tee", "snp", snp / "v2-milan.report", "--cert", broken, "--roots", roots)
    assert (code, report["reason"]) == (1, "certificate-unusable")


def test_the_text_says_the_answer_first_and_what_to_do(tdx: Path) -> None:
    result = verify("--tee", "tdx", tdx / "v4-debug-td.quote", "--at", JUNE)
    assert result.stdout.splitlines()[0].startswith("tdx evidence refused (debug-allowed): authentic")
    assert "Start it without debugging." in result.stdout
