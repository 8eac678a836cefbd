"""Simulated evidence before programs that share no code with us: tpm2-tools, OpenSSL, dcap-qvl, a real TPM in software."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import dcap_qvl  # type: ignore[import-untyped]
import pytest
import yaml

from fastness.crypto.errors import BrokenSeal
from fastness.formats.evidence.snp.tcb import Generation
from fastness.formats.evidence.tpm.public import parse_public
from fastness.sim.tee import SimVendor, default_image, tamper
from fastness.sim.tee.snp import Endorsement
from fastness.sim.tee.tdx import pem
from fastness.sim.tee.tpm import Keys, TpmMachine
from fastness.sim.tee.vendor import EPOCH
from fastness.sim.tee.writers import asn1
from fastness.sim.tee.writers.tpm2 import name_of
from tests.components import require_program
from tests.swtpm import Swtpm

pytestmark = pytest.mark.processes

VENDOR = SimVendor()
NONCE = bytes(range(32))
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TPM2TOOLS_TCTI": "none"}


def ran(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(word) for word in words], capture_output=True, env=ENVIRONMENT, timeout=60, check=False)


@pytest.fixture(scope="module")
def tools() -> None:
    require_program(Path("/usr/bin/tpm2_checkquote"), "tpm2-tools")


def written(machine: TpmMachine, directory: Path) -> list[str | Path]:
    """A quote in files, and the words of the tool that checks it."""
    message, signature = machine.attest(NONCE)
    files = {
        "quote": message,
        "signature": signature,
        "key": pem(machine.identity_key.public_der()).replace("CERTIFICATE", "PUBLIC KEY").encode(),
    }
    for name, data in files.items():
        (directory / name).write_bytes(data)
    words: list[str | Path] = ["tpm2_checkquote", "-u", directory / "key", "-m", directory / "quote"]
    return [*words, "-s", directory / "signature", "-g", "sha256"]


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("keys", ["ecc", "rsa"])
def test_tpm2_tools_accept_our_quotes_with_the_right_nonce_only(keys: Keys, tmp_path: Path) -> None:
    words = written(VENDOR.chip("tpm", keys=keys).boot(), tmp_path)
    good = ran(*words, "-q", NONCE.hex())
    assert good.returncode == 0, good.stderr
    assert ran(*words, "-q", bytes(32).hex()).returncode != 0
    quote = bytearray((tmp_path / "quote").read_bytes())
    quote[-1] ^= 1
    (tmp_path / "quote").write_bytes(quote)
    assert ran(*words, "-q", NONCE.hex()).returncode != 0


@pytest.mark.usefixtures("tools")
def test_tpm2_tools_compute_the_digest_of_our_registers(tmp_path: Path) -> None:
    machine = VENDOR.chip("tpm").boot(registers=(4, 7, 11))
    words = written(machine, tmp_path)
    (tmp_path / "pcrs").write_bytes(b"".join(machine.pcrs[index] for index in (4, 7, 11)))
    given = [*words, "-q", NONCE.hex(), "-f", tmp_path / "pcrs", "-l", "sha256:4,7,11"]
    good = ran(*given)
    assert good.returncode == 0, good.stderr
    (tmp_path / "pcrs").write_bytes(b"".join(machine.pcrs[index] for index in (4, 7, 14)))
    assert ran(*given).returncode != 0


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("keys", ["ecc", "rsa"])
def test_tpm2_tools_read_our_public_areas(keys: Keys, tmp_path: Path) -> None:
    machine = VENDOR.chip("tpm", keys=keys).boot()
    areas = {
        "ak": (machine.ak_public, "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|restricted|sign"),
        "ek": (machine.ek_public, "fixedtpm|fixedparent|sensitivedataorigin|adminwithpolicy|restricted|decrypt"),
    }
    for name, (public, attributes) in areas.items():
        (tmp_path / name).write_bytes(public)
        printed = ran("tpm2_print", "-t", "TPM2B_PUBLIC", tmp_path / name)
        assert printed.returncode == 0, printed.stderr
        assert yaml.safe_load(printed.stdout)["attributes"]["value"] == attributes


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("keys", ["ecc", "rsa"])
def test_our_tpm_opens_what_tpm2_tools_sealed_to_it(keys: Keys, tmp_path: Path) -> None:
    machine, other = VENDOR.chip("tpm", keys=keys).boot(), VENDOR.chip("tpm", keys=keys).boot()
    (tmp_path / "ek").write_bytes(machine.ek_public)
    (tmp_path / "secret").write_bytes(b"between us")
    name = name_of(machine.chip.ak_area).hex()
    words: list[str | Path] = ["tpm2_makecredential", "-T", "none", "-u", tmp_path / "ek", "-s", tmp_path / "secret"]
    made = ran(*words, "-n", name, "-o", tmp_path / "blob")
    assert made.returncode == 0, made.stderr
    blob = (tmp_path / "blob").read_bytes()[8:]  # behind the tool's own magic number and version
    end = 2 + int.from_bytes(blob[:2], "big")
    assert machine.activate(blob[:end], blob[end:]).reveal() == b"between us"
    with pytest.raises(BrokenSeal):
        other.activate(blob[:end], blob[end:])


@pytest.mark.usefixtures("tools")
def test_tpm2_tools_replay_our_logs_to_our_registers(tmp_path: Path) -> None:
    for image in (default_image(), tamper.with_options(default_image())):
        (tmp_path / "log").write_bytes(image.event_log)
        printed = ran("tpm2_eventlog", tmp_path / "log")
        assert printed.returncode == 0, printed.stderr
        read = yaml.safe_load(printed.stdout)
        replayed = {index: value.to_bytes(32, "big") for index, value in read["pcrs"]["sha256"].items()}
        assert {index: image.pcrs[index] for index in replayed} == replayed
        assert len(read["events"]) == len(image.events) + 1
        (tmp_path / "log").write_bytes(image.cc_event_log)
        runtime = yaml.safe_load(ran("tpm2_eventlog", tmp_path / "log").stdout)["pcrs"]["sha384"]
        assert {index + 1: value for index, value in enumerate(image.rtmrs[:3])} == {
            index: value.to_bytes(48, "big") for index, value in runtime.items()
        }


@pytest.mark.usefixtures("tools")
def test_tpm2_tools_read_the_events_by_their_structures(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(default_image().event_log)
    events = yaml.safe_load(ran("tpm2_eventlog", tmp_path / "log").stdout)["events"]
    variables = [
        entry["Event"]["UnicodeName"] for entry in events if entry["EventType"] == "EV_EFI_VARIABLE_DRIVER_CONFIG"
    ]
    assert variables == ["SecureBoot", "PK", "KEK", "db", "dbx"]
    loaded = [
        entry["Event"]["DevicePath"] for entry in events if entry["EventType"] == "EV_EFI_BOOT_SERVICES_APPLICATION"
    ]
    assert len(loaded) == 3


@pytest.mark.parametrize("keys", ["ecc", "rsa"])
def test_a_real_tpm_loads_our_keys_and_gives_them_the_same_names(keys: Keys, swtpm: Swtpm, tmp_path: Path) -> None:
    machine = VENDOR.chip("tpm", keys=keys).boot()
    message, signature = machine.attest(NONCE)
    files = {"ak": machine.ak_public, "ek": machine.ek_public, "quote": message, "signature": signature}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for name in ("ak", "ek"):
        context, named = tmp_path / f"{name}.context", tmp_path / f"{name}.name"
        swtpm.tool("loadexternal", "-C", "n", "-u", str(tmp_path / name), "-c", str(context), "-n", str(named))
        assert named.read_bytes() == parse_public(files[name]).name
    words = ("-c", str(tmp_path / "ak.context"), "-g", "sha256", "-m", str(tmp_path / "quote"))
    swtpm.tool("verifysignature", *words, "-s", str(tmp_path / "signature"))
    (tmp_path / "quote").write_bytes(message + b"\0")
    with pytest.raises(subprocess.CalledProcessError):
        swtpm.tool("verifysignature", *words, "-s", str(tmp_path / "signature"))


@pytest.mark.parametrize("endorsement", ["VCEK", "VLEK"])
@pytest.mark.parametrize("version", [2, 3, 5])
@pytest.mark.parametrize("generation", list(Generation))
def test_openssl_verifies_the_signature_of_every_report(
    generation: Generation, version: int, endorsement: Endorsement, tmp_path: Path
) -> None:
    require_program(Path("/usr/bin/openssl"), "openssl")
    machine = VENDOR.chip("snp", generation=generation, endorsement=endorsement).boot(version=version)
    raw = machine.report(NONCE)
    r, s = (int.from_bytes(raw[start : start + 72], "little") for start in (0x2A0, 0x2E8))
    (tmp_path / "body").write_bytes(raw[:0x2A0])
    (tmp_path / "signature").write_bytes(asn1.sequence(asn1.integer(r), asn1.integer(s)))
    (tmp_path / "key").write_text(pem(machine.chip.key.public_der()).replace("CERTIFICATE", "PUBLIC KEY"))
    words = ("openssl", "dgst", "-sha384", "-verify", tmp_path / "key", "-signature", tmp_path / "signature")
    assert ran(*words, tmp_path / "body").returncode == 0
    (tmp_path / "body").write_bytes(raw[:0x29F] + b"\x01")
    assert ran(*words, tmp_path / "body").returncode != 0


@pytest.mark.parametrize("generation", list(Generation))
def test_openssl_verifies_amds_chains_and_lists(generation: Generation, tmp_path: Path) -> None:
    require_program(Path("/usr/bin/openssl"), "openssl")
    chip = VENDOR.chip("snp", generation=generation)
    for name, der in zip(("leaf", "middle", "root"), chip.certificates, strict=True):
        (tmp_path / name).write_text(pem(der))
    at = str(int(EPOCH.timestamp()))
    words = ("openssl", "verify", "-attime", at, "-CAfile", tmp_path / "root", "-untrusted", tmp_path / "middle")
    good = ran(*words, tmp_path / "leaf")
    assert good.returncode == 0, good.stderr
    stranger = VENDOR.chip(
        "snp", generation=Generation.MILAN if generation is not Generation.MILAN else Generation.GENOA
    )
    (tmp_path / "leaf").write_text(pem(stranger.certificate))
    assert ran(*words, tmp_path / "leaf").returncode != 0
    (tmp_path / "crl").write_bytes(VENDOR.revocations(generation, serials=[0x10001]))
    listed = ran(
        "openssl", "crl", "-inform", "DER", "-in", tmp_path / "crl", "-CAfile", tmp_path / "root", "-noout", "-text"
    )
    assert b"verify OK" in listed.stderr
    assert b"Serial Number: 010001" in listed.stdout


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("level", "status"), [("current", "UpToDate"), ("hardening", "SWHardeningNeeded"), ("old", "OutOfDate")]
)
def test_dcap_qvl_accepts_our_quotes_on_our_root_alone(version: int, level: str, status: str) -> None:
    quote = VENDOR.chip("tdx", level=level).boot(version=version).raw_quote(NONCE)
    collateral = dcap_qvl.QuoteCollateralV3.from_json(VENDOR.collateral().raw)
    at, root = int(EPOCH.timestamp()), VENDOR.tdx.root.certificate
    assert str(dcap_qvl.verify_with_root_ca(quote, collateral, root, at).status) == status
    with pytest.raises(ValueError, match=r"."):
        dcap_qvl.verify(quote, collateral, at)
    broken = bytearray(quote)
    broken[100] ^= 1
    with pytest.raises(ValueError, match=r"."):
        dcap_qvl.verify_with_root_ca(bytes(broken), collateral, root, at)


def test_dcap_qvl_refuses_a_debuggable_domain() -> None:
    evidence = VENDOR.chip("tdx").boot(debug=True).quote(NONCE)
    collateral = dcap_qvl.QuoteCollateralV3.from_json(VENDOR.collateral().raw)
    with pytest.raises(ValueError, match=r"(?i)debug"):
        dcap_qvl.verify_with_root_ca(
            base64.b64decode(evidence["quote"]), collateral, VENDOR.tdx.root.certificate, int(EPOCH.timestamp())
        )
