"""`fastness attest`: judge evidence from files, without a cluster; explain what a cluster decided.

    fastness attest verify --tee snp report.bin --cert vcek.der --roots vendor-roots/
    fastness attest explain [MACHINE]

The same verifier that a cluster runs, on raw files: binary, hexadecimal, base64 or JSON envelopes, recognised by content.

* 0: signature, endorsement and freshness were proved, or `--allow` says which may be missing, and nothing refuses it; 1: refused,
  also when a certificate or collateral cannot be used or a mandatory check could not be made; 2: the evidence cannot be read.
* Freshness needs the nonce, the endorsement of a TPM the enrolled key. A certificate cannot take that key's place: that a key
  lives in a TPM is shown by credential activation, at enrolment.
* Certificates given here are material, never trust: a chain must end in a root that is pinned in the code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import click
import msgspec

from fastness.attestation.evidence.checks import Appraisal, Findings
from fastness.attestation.evidence.proofs import ALLOWABLE, SIMULATED_ORGANIZATION, SIMULATED_TPM_FIRMWARE, proofs_of
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.cli.cluster import cluster_options
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.attest_view import OfflineAnswer, answer_text
from fastness.cli.trust.explain import explained, explanation_text, unattested
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.verify import AttestationKey
from fastness.crypto.x509 import Certificate
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.envelope import MAX_EVIDENCE, bounded, undressed
from fastness.formats.evidence.snp.envelope import parse_evidence as parse_snp
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.formats.evidence.tdx.quote import parse_evidence as parse_tdx
from fastness.formats.evidence.tpm.envelope import parse_envelope as parse_tpm
from fastness.formats.words import counted
from fastness.runtime.clock import SystemClock

CERTIFICATE_SUFFIXES: Final = (".pem", ".der", ".crt", ".cer")
UNSUPPORTED: Final[Mapping[str, str]] = {
    "az-snp-vtpm": "the binding of Azure's vTPM to the SNP report (HCL report)",
    "az-tdx-vtpm": "the binding of Azure's vTPM to the TDX quote (HCL report)",
    "sgx": "a verifier for enclaves: machines do not boot into one",
    "cca": "a verifier for Arm CCA tokens and a pinned root for their platforms",
    "csv": "a verifier for Hygon CSV reports and a pinned Hygon root",
    "se": "the host key documents of IBM Secure Execution and the key that its challenge is made with",
    "nvidia": "the verifier for SPDM measurements of GPUs",
    "nvidia-dpu": "the verifier for SPDM measurements of DPUs",
    "hygondcu": "a verifier for Hygon DCU reports and a pinned Hygon root",
    "sample": "hardware: the sample TEE proves nothing",
    "sampledevice": "hardware: the sample device proves nothing",
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the command line says, read but not judged."""

    evidence: bytes
    collateral: bytes
    certificates: tuple[Certificate, ...]
    key: AttestationKey | None
    nonce: bytes | None
    event_log: bytes
    at: datetime
    chains: bool = False


@click.group()
def attest() -> None:
    """Judge evidence."""


@attest.command()
@click.argument("machine", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="Show the checks that passed as well.")
@cluster_options
@output_option
@click.pass_context
def explain(
    ctx: click.Context, machine: str, everything: bool, kubeconfig: Path | None, context: str, output: str
) -> None:
    """Say why MACHINE stands as it does, and what to do: 0 when it is attested, 1 when not.

    Without MACHINE: the same of every machine that is not attested, with the nodes that never were. 0 when machines enrolled and
    all are attested, 1 otherwise.
    """
    if not machine:
        ctx.exit(_explain_unattested(everything, kubeconfig, context, output))
    with reported_errors():
        explanation = asyncio.run(explained(machine, kubeconfig, context))
    if output == "json":
        show_json(explanation.to_json())
    else:
        click.echo(explanation_text(explanation, everything=everything))
    ctx.exit(Exit.OK if explanation.attested else Exit.NO)


def _explain_unattested(everything: bool, kubeconfig: Path | None, context: str, output: str) -> Exit:
    """Tell of all machines that are not attested and all nodes that never were, as many as one can read."""
    with reported_errors():
        unproved = asyncio.run(unattested(kubeconfig, context))
    good = bool(unproved.enrolled) and not unproved.machines and not unproved.nodes
    if output == "json":
        show_json({
            "enrolled": unproved.enrolled, "machines": [explanation.to_json() for explanation in unproved.machines],
            "leftOut": unproved.left_out, "nodesNeverAttested": list(unproved.nodes),
        })  # fmt: skip
        return Exit.OK if good else Exit.NO
    if unproved.machines:
        click.echo(
            "\n\n".join(explanation_text(explanation, everything=everything) for explanation in unproved.machines)
        )
    for node in unproved.nodes:
        click.echo(f"node {node} never attested: it joined before attestation was required, or past it")
    if unproved.left_out:
        more = counted(unproved.left_out, "more is", "more are")
        tell(f"{more} not attested: see `fastness machine list`, and explain one by its name")
    if not unproved.enrolled:
        tell("no machine has enrolled: nothing is attested")
    elif good:
        tell("every machine that enrolled is attested")
    return Exit.OK if good else Exit.NO


_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@attest.command()
@click.argument("evidence", type=_FILE)
@click.option("--tee", required=True, help="What kind of evidence it is: tdx, snp or tpm.")
@click.option("--collateral", type=_FILE, help="Intel's documents about the platform, for tdx.")
@click.option(
    "--roots",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A directory of vendors' certificates; only those with a pinned fingerprint count as roots.",
)
@click.option("--cert", "certs", type=_FILE, multiple=True, help="A certificate of the chain, PEM or DER; repeatable.")
@click.option("--ak", type=_FILE, help="The attestation key that was enrolled, for tpm.")
@click.option("--nonce", metavar="HEX", help="The nonce that the evidence must answer, in hexadecimal.")
@click.option("--nonce-text", metavar="TEXT", help="The same, as text.")
@click.option("--event-log", type=_FILE, help="The boot event log, to be replayed against the signed registers.")
@click.option("--at", metavar="RFC3339", help="Judge as of this time instead of now.")
@click.option(
    "--allow",
    type=click.Choice(ALLOWABLE),
    multiple=True,
    help="What may be missing without a refusal; repeatable. A signature may never be.",
)
@output_option
@click.pass_context
def verify(
    ctx: click.Context,
    evidence: Path,
    tee: str,
    collateral: Path | None,
    roots: Path | None,
    certs: tuple[Path, ...],
    ak: Path | None,
    nonce: str | None,
    nonce_text: str | None,
    event_log: Path | None,
    at: str | None,
    allow: tuple[str, ...],
    output: str,
) -> None:
    """Say which of signature, endorsement and freshness EVIDENCE proves, and what refuses it, check by check."""
    judge = _judge_of(tee)
    spoiled = Findings()
    inputs = Inputs(
        evidence=_read(evidence),
        collateral=_read(collateral) if collateral else b"",
        certificates=tuple(_certificates(spoiled, certs, roots)),
        key=_usable(spoiled, "attestation-key", AttestationKey, _read(ak)) if ak else None,
        nonce=_nonce(nonce, nonce_text),
        event_log=_usable(spoiled, "event-log", undressed, _read(event_log)) or b"" if event_log else b"",
        at=_instant(at) if at else SystemClock().now(),
        chains=bool(certs or roots),
    )
    try:
        appraisal = judge(inputs, spoiled)
    except EvidenceError as error:
        raise CliError(f"{evidence}: {error} ({error.code})", error.hint, Exit.USAGE) from error
    appraisal = msgspec.structs.replace(appraisal, checks=(*spoiled.checks, *appraisal.checks))
    answer = OfflineAnswer(appraisal, proofs_of(appraisal), allow, simulated=_simulated(inputs, appraisal))
    if output == "json":
        show_json(answer.to_json())
    else:
        click.echo(answer_text(answer))
    ctx.exit(Exit.OK if answer.acceptable else Exit.NO)


def _simulated(inputs: Inputs, appraisal: Appraisal) -> bool:
    """Whether the evidence came from the simulator, as it says itself; nothing rests on that but a word of warning."""
    if appraisal.tee == "tpm":
        return bool(appraisal.claims["tpm"]["firmware_version"] == f"{SIMULATED_TPM_FIRMWARE:016x}")
    mark = SIMULATED_ORGANIZATION.encode()
    carried: list[Certificate] = []
    if appraisal.tee == "tdx":
        carried = _readable([parse_tdx(bounded(inputs.evidence)).quote.pck_chain])
    elif appraisal.tee == "snp":
        carried = _readable(parse_snp(bounded(inputs.evidence)).certificates)
    return any(mark in certificate.der for certificate in (*carried, *inputs.certificates))


def _readable(files: Iterable[bytes]) -> list[Certificate]:
    certificates: list[Certificate] = []
    for data in files:
        with suppress(CryptoError):
            certificates += load_certificates(data)
    return certificates


def _judge_of(tee: str) -> Callable[[Inputs, Findings], Appraisal]:
    judges = {"tdx": _tdx, "snp": _snp, "tpm": _tpm}
    if tee in judges:
        return judges[tee]
    judgeable = f"Evidence of {', '.join(judges)} can be judged."
    if tee in UNSUPPORTED:
        raise CliError(f"evidence of {tee} is refused: what is missing is {UNSUPPORTED[tee]}", judgeable)
    raise CliError(f"{tee!r} is not a kind of evidence", judgeable, Exit.USAGE)


def _tdx(inputs: Inputs, spoiled: Findings) -> Appraisal:
    evidence = parse_tdx(bounded(inputs.evidence))
    collateral = _usable(spoiled, "collateral", parse_collateral, inputs.collateral) if inputs.collateral else None
    expected = TdxExpectations(
        nonce=inputs.nonce, collateral=collateral, event_log=inputs.event_log or evidence.event_log
    )
    return appraise_tdx(evidence.quote, inputs.certificates, expected, inputs.at)


def _snp(inputs: Inputs, spoiled: Findings) -> Appraisal:
    _refuse(inputs.collateral, "--collateral", "SNP has none: its certificates go to --cert and --roots.")
    _refuse(inputs.event_log, "--event-log", "SNP has no runtime registers that a log could be replayed against.")
    evidence = parse_snp(bounded(inputs.evidence))
    carried = [
        entry
        for number, data in enumerate(evidence.certificates)
        for entry in _usable(spoiled, f"certificate {number} of the evidence", load_certificates, data) or ()
    ]
    return appraise_snp(
        evidence.report,
        [*carried, *inputs.certificates],
        SnpExpectations(nonce=inputs.nonce, refuse_old=False),
        inputs.at,
    )


def _tpm(inputs: Inputs, _: Findings) -> Appraisal:
    _refuse(inputs.collateral, "--collateral", "A TPM quote has none.")
    if inputs.certificates or inputs.chains:
        raise click.UsageError(
            "--cert and --roots do not fit a TPM quote. A certificate shows that a TPM exists, not that the key of this quote "
            "lives in it: credential activation does that, at enrolment. Give the enrolled key with --ak."
        )
    data = bounded(inputs.evidence)
    if undressed(data).startswith(b"\xffTCG"):
        raise EvidenceError(
            "signature-missing",
            "this is a quote without its signature and register values",
            hint='Put all three into JSON: {"ak_public", "tpm_quote": {"message", "signature", "pcrs"}}.',
        )
    expected = TpmExpectations(nonce=inputs.nonce, known_key=inputs.key, event_log=inputs.event_log)
    return appraise_tpm(parse_tpm(data), expected)


def _refuse(value: bytes, option: str, reason: str) -> None:
    if value:
        raise click.UsageError(f"{option} does not fit this evidence. {reason}")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_EVIDENCE + 1)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}", code=Exit.USAGE) from error


def _usable(spoiled: Findings, name: str, read: Callable[[bytes], T], data: bytes) -> T | None:
    """What `read` makes of a file beside the evidence; a file that cannot be used is a finding, and refuses."""
    try:
        return read(data)
    except (CryptoError, EvidenceError) as error:
        spoiled.fail(name, f"{name.split()[0]}-unusable", str(error), hint=error.hint)
        return None


def _certificates(spoiled: Findings, files: Sequence[Path], roots: Path | None) -> list[Certificate]:
    certificates = []
    for path in files:
        certificates += _usable(spoiled, f"certificate {path.name}", load_certificates, _read(path)) or []
    entries = sorted(roots.iterdir()) if roots else []
    for path in entries:
        if path.suffix.lower() in CERTIFICATE_SUFFIXES and path.is_file():
            certificates += _usable(spoiled, f"certificate {path.name}", load_certificates, _read(path)) or []
    return certificates


def _nonce(hexadecimal: str | None, text: str | None) -> bytes | None:
    if hexadecimal is not None and text is not None:
        raise click.UsageError("--nonce and --nonce-text say the same: give one of them.")
    if text is not None:
        return text.encode("utf-8")
    if hexadecimal is None:
        return None
    try:
        return bytes.fromhex(hexadecimal)
    except ValueError as error:
        raise click.UsageError("--nonce is not hexadecimal; for text there is --nonce-text.") from error


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.UsageError("--at is not a time like 2025-06-25T00:00:00Z.") from error
    if at.tzinfo is None:
        raise click.UsageError("--at has no time zone: end it in Z for UTC.")
    return at.astimezone(UTC)
