"""Evidence: CPU of a verdict beside the signature check that it cannot do without; in a process of its own.

`python -m bench.attestation ROUNDS` prints the figures that `figures` reads: lists of numbers by name. Ours and the bare check
take turns in short stretches; of each round the fastest stretch of either counts, because what neighbours cost is not ours.

* TPM: decoded JSON in, verdict out; beside the one signature of the quote with the key already loaded.
* SNP: the JSON of a report with its certificates, all seen before (warm); beside the one P-384 signature of the report.
* TDX: beside dcap-qvl on the same quote and collateral; ours includes that second opinion, so one is the least possible.
* Event log: reading, replaying every bank, comparing with signed registers and making claims, per event.
* Volume header: both copies as a machine reads them from its disk, parsed and held to the rules; keys are not part of it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Final

import orjson
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bench.figures import DISK_HEADER, EVENT, SNP_TIMES, TPM_TIMES, Progress, Single, Spread
from fastness.agent.disks.rules import checked_header
from fastness.attestation.evidence.checks import Findings
from fastness.attestation.evidence.replay import judge_log, remembered, replay
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.dcap import second_opinion
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.evidence.eventlog.log import parse_log
from fastness.formats.evidence.snp.envelope import read_envelope as read_snp
from fastness.formats.evidence.tdx.quote import parse_evidence as parse_tdx
from fastness.formats.evidence.tpm.envelope import read_envelope as read_tpm
from fastness.formats.luks2.header import HEADER_BYTES
from fastness.protocol.user_data_event import PCR
from fastness.sim.tee import SimVendor
from fastness.sim.tee.vendor import EPOCH
from tests.volumes import DISK_BYTES, volume

TPM_RSA_TIMES: Final = "verdict on a TPM quote, RSA-2048, over its signature check: CPU"
TDX_TIMES: Final = "verdict on a TDX quote over dcap-qvl alone: CPU"
TPM_COST, SNP_COST, TDX_COST = (f"verdict on {what}: CPU" for what in ("a TPM quote", "an SNP report", "a TDX quote"))
EVENTS: Final = "events of the log that was measured"
NONCE: Final = bytes(32)
STRETCHES: Final = 160  # a round lasts long enough to have a quiet moment, also on a machine with neighbours
ROOT: Final = Path(__file__).resolve().parent.parent
Work = Callable[[], object]


def figures(say: Progress, rounds: int) -> list[Single]:
    """Every figure, measured in a process that does nothing else."""
    say("evidence")
    command = [sys.executable, "-m", "bench.attestation", str(max(5, 3 * rounds))]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    spreads = {name: Spread.of(values) for name, values in orjson.loads(done.stdout).items()}
    return [
        Single(TPM_TIMES, spreads[TPM_TIMES], "×", 1.5),
        Single(TPM_RSA_TIMES, spreads[TPM_RSA_TIMES], "×"),
        Single(SNP_TIMES, spreads[SNP_TIMES], "×", 1.3),
        Single(TDX_TIMES, spreads[TDX_TIMES], "×"),
        Single(EVENT, spreads[EVENT], "µs", 6.0),
        Single(DISK_HEADER, spreads[DISK_HEADER], "µs", 2000.0),
        Single(EVENTS, spreads[EVENTS], ""),
        *(Single(name, spreads[name], "µs") for name in (TPM_COST, SNP_COST, TDX_COST)),
    ]


def measured(rounds: int) -> dict[str, list[float]]:
    """Ratios and microseconds of CPU by name."""
    vendor = SimVendor()
    result: dict[str, list[float]] = {}
    result[TPM_TIMES], result[TPM_COST] = _ratio(rounds, 10, *_tpm(vendor, "ecc"))
    result[TPM_RSA_TIMES], _ = _ratio(rounds, 10, *_tpm(vendor, "rsa"))
    result[SNP_TIMES], result[SNP_COST] = _ratio(rounds, 3, *_snp(vendor))
    result[TDX_TIMES], result[TDX_COST] = _ratio(rounds, 2, *_tdx(vendor))
    result[EVENT], result[EVENTS] = _log(rounds, vendor)
    result[DISK_HEADER] = _disk_header(rounds)
    return result


def _ratio(rounds: int, times: int, ours: Work, bare: Work) -> tuple[list[float], list[float]]:
    """Ours over the bare work by rounds, and microseconds of ours."""
    ratios, costs = [], []
    for _ in range(rounds):
        fastest = [inf, inf]
        for _ in range(STRETCHES):
            for which, work in enumerate((ours, bare)):
                fastest[which] = min(fastest[which], _spent(times, work))
        ratios.append(fastest[0] / fastest[1])
        costs.append(fastest[0])
    return ratios, costs


def _spent(times: int, work: Work) -> float:
    began = time.thread_time()
    for _ in range(times):
        work()
    return 1e6 * (time.thread_time() - began) / times


def _tpm(vendor: SimVendor, keys: Any) -> tuple[Work, Work]:
    machine: Any = vendor.chip("tpm", keys=keys).boot()
    wire = machine.quote(NONCE)
    del wire["event_log"]  # has a figure of its own
    identity = AttestationKey(machine.identity_key.public_der())
    expected = TpmExpectations(nonce=NONCE, known_key=identity)
    evidence = read_tpm(wire)
    assert appraise_tpm(evidence, expected).acceptable
    key, message, numbers = (
        serialization.load_der_public_key(identity.der),
        evidence.quote.message,
        evidence.signature.numbers,
    )
    algorithm, bare = hashes.SHA256(), None
    if isinstance(key, rsa.RSAPublicKey):
        first, rsa_key, scheme = numbers[0], key, padding.PKCS1v15()
        bare = lambda: rsa_key.verify(first, message, scheme, algorithm)  # noqa: E731 - the work that is timed
    elif isinstance(key, ec.EllipticCurvePublicKey):
        signature = encode_dss_signature(*(int.from_bytes(number, "big") for number in numbers))
        ec_key, ecdsa = key, ec.ECDSA(algorithm)
        bare = lambda: ec_key.verify(signature, message, ecdsa)  # noqa: E731 - the work that is timed
    assert bare is not None
    return (lambda: appraise_tpm(read_tpm(wire), expected).acceptable), bare


def _snp(vendor: SimVendor) -> tuple[Work, Work]:
    machine: Any = vendor.chip("snp").boot()
    wire = machine.quote(NONCE)
    expected = SnpExpectations(nonce=NONCE, roots=vendor.roots.amd)

    def verdict() -> bool:
        evidence = read_snp(wire)
        pool = [certificate for der in evidence.certificates for certificate in load_certificates(der)]
        return appraise_snp(evidence.report, pool, expected, EPOCH).acceptable

    assert verdict()
    evidence = read_snp(wire)
    key = load_certificates(evidence.certificates[0])[0].public_key
    assert isinstance(key, ec.EllipticCurvePublicKey)
    signature = encode_dss_signature(evidence.report.signature_r, evidence.report.signature_s)
    signed, ecdsa = evidence.report.signed, ec.ECDSA(hashes.SHA384())
    return verdict, lambda: key.verify(signature, signed, ecdsa)


def _tdx(vendor: SimVendor) -> tuple[Work, Work]:
    machine: Any = vendor.chip("tdx").boot()
    wire = orjson.dumps({"quote": machine.quote(NONCE)["quote"]})
    collateral = vendor.collateral(EPOCH)
    expected = TdxExpectations(nonce=NONCE, collateral=collateral, root=vendor.roots.intel)
    quote = parse_tdx(wire).quote
    assert appraise_tdx(quote, (), expected, EPOCH).acceptable
    root = load_certificates(vendor.tdx.root.certificate)[0]
    assert not second_opinion(quote.raw, collateral.raw, root, EPOCH).refusal
    return (
        lambda: appraise_tdx(parse_tdx(wire).quote, (), expected, EPOCH).acceptable,
        lambda: second_opinion(quote.raw, collateral.raw, root, EPOCH),
    )


def _log(rounds: int, vendor: SimVendor) -> tuple[list[float], list[float]]:
    machine: Any = vendor.chip("tpm").boot()
    data = machine.event_log
    log = parse_log(data)
    signed = {index: value for index, value in replay(log)["sha256"].items() if index < 24}
    assert judge_log(Findings(), data, "sha256", signed, PCR)

    def work() -> None:
        remembered.cache_clear()  # every log is a new one here
        judge_log(Findings(), data, "sha256", signed, PCR)

    costs = [min(_spent(2, work) for _ in range(STRETCHES)) / len(log.events) for _ in range(rounds)]
    return costs, [float(len(log.events))]


def _disk_header(rounds: int) -> list[float]:
    data = volume()[:HEADER_BYTES]
    return [min(_spent(2, lambda: checked_header(data, DISK_BYTES)) for _ in range(STRETCHES)) for _ in range(rounds)]


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(measured(int(sys.argv[1]))))
