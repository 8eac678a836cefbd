"""Whether an SNP chip is still good: its generation, its firmware versions, and what AMD has revoked.

* Minimums hold for the reported, committed and launch version: a host could roll back to anything between. Each generation has
  one that is built in (`snp_floors`), which a cluster can raise. Whoever only asks what evidence says gets a warning instead.
* Milan is a tier of its own that can be switched off (`generations`): its root seed was extracted by software (arXiv 2605.12990).
* AMD's list is issued by the root and speaks of the authorities below it. Endorsement keys all have the serial number zero, so no
  list can name one; they are outdated by raising the minimum.
* Where lists are required, a missing or old one refuses: an old list hides what was revoked since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fastness.attestation.evidence.checks import Findings, instant
from fastness.attestation.evidence.snp_floors import DATE, SOURCE, floor_of
from fastness.crypto.silicon.chains import subject_name
from fastness.crypto.silicon.pins import AMD_ROOTS
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.x509 import Certificate
from fastness.formats.evidence.snp.report import Report
from fastness.formats.evidence.snp.tcb import Generation, Tcb, read_tcb

_AMD: Final = "AMD"
_FLOORS: Final = f"the minimum of this cluster and generation ({SOURCE}, {DATE})"
_RENEW: Final = "Fetch AMD's revocation list of this generation again."


@dataclass(frozen=True, slots=True)
class SnpExpectations:
    """What the caller knows: challenge, privilege level, minimum versions, generations that still count, revocations, roots.

    `refuse_old` makes firmware below the built-in minimum a refusal, and else a warning. `simulated` says that the roots are
    of a simulated vendor, in a simulated cluster.
    """

    nonce: bytes | None = None
    vmpl: int = 0
    minimum: Mapping[Generation, Tcb] = field(default_factory=dict)
    generations: frozenset[Generation] = frozenset(Generation)
    revocations: Mapping[Generation, RevocationList] = field(default_factory=dict)
    revocations_required: bool = False
    roots: Mapping[str, str] = field(default_factory=lambda: AMD_ROOTS)
    refuse_old: bool = True
    simulated: bool = False


def judge_revocation(
    findings: Findings, chain: Sequence[Certificate], generation: Generation, expected: SnpExpectations, at: datetime
) -> None:
    """Ask the revocation list of a generation about the authorities of a chain."""
    listed = expected.revocations.get(generation)
    if listed is None:
        findings.skip(
            "revocation-list",
            "crl-missing",
            f"no revocation list of {generation} is at hand",
            hint=_RENEW,
            # Left to the caller, because a cluster without a way out cannot fetch one; where it is required, silence is a refusal
            # (pitfall 19).
            mandatory=expected.revocations_required,
        )
        return
    # Genuine before current: the dates of a list that somebody made up say nothing, and the two codes send an operator elsewhere.
    genuine = listed.signed_by(chain[-1])
    if not findings.expect(
        "revocation-list",
        genuine and listed.current(at),
        "crl-expired" if genuine else "crl-unusable",
        seen=listed.dates,
        expected=f"issued by {subject_name(chain[-1])}, current at {instant(at)}",
        source=_AMD,
        hint=_RENEW,
    ):
        return
    # The leaf is left out: its serial number zero would match any entry of another chip.
    revoked = [subject_name(entry) for entry in chain[1:] if listed.revokes(entry)]
    findings.expect(
        "revocation",
        not revoked,
        "certificate-revoked",
        seen=", ".join(revoked) or "none of this chain",
        expected="none of this chain",
        source=_AMD,
        hint="AMD no longer vouches for the keys of this generation under that authority.",
    )


def judge_versions(findings: Findings, report: Report, generation: Generation, expected: SnpExpectations) -> None:
    """Compare generation and firmware versions with what still counts."""
    findings.expect(
        "generation-accepted",
        generation in expected.generations,
        "generation-refused",
        seen=str(generation),
        expected=", ".join(sorted(expected.generations)),
        source="the expectations",
    )
    # By generation: the numbers are counted for each anew, and 23 is new on one chip and years old on another.
    raised = expected.minimum.get(generation)
    floor = floor_of(generation, report.cpu, raised)
    named = (("reported", report.reported_tcb), ("committed", report.committed_tcb), ("launch", report.launch_tcb))
    # All three: the reported version can be set by the host, the committed one is how far it may go back, and the third is what
    # the guest was launched under (pitfall 9).
    for name, raw in named:
        _minimum(findings, name, read_tcb(raw, generation), floor, refuses=expected.refuse_old or raised is not None)
    # Only a warning: what runs is new enough. But until SNP_COMMIT the host may load the older firmware again (SNP firmware ABI).
    if report.committed_tcb != report.current_tcb:
        findings.warn(
            "tcb-rollback",
            "tcb-not-committed",
            str(read_tcb(report.committed_tcb, generation)),
            expected=str(read_tcb(report.current_tcb, generation)),
            source="the running firmware",
            hint="The host can still go back to the committed firmware.",
        )


def _minimum(findings: Findings, name: str, tcb: Tcb, floor: Tcb, *, refuses: bool) -> None:
    behind = tcb.behind(floor)
    advice, expected = f"Behind: {', '.join(behind)}. Update the host's firmware.", f"at least {floor}"
    if behind and not refuses:
        findings.warn(f"tcb-{name}", "tcb-behind", str(tcb), expected=expected, source=_FLOORS, hint=advice)
        return
    findings.expect(
        f"tcb-{name}", not behind, "tcb-behind", seen=str(tcb), expected=expected, source=_FLOORS, hint=advice
    )
