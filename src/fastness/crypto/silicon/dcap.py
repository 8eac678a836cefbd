"""A second opinion on TDX quotes, by an implementation that shares no code with ours.

dcap-qvl verifies the same quote with the same collateral, root and time. It is asked for every quote that has collateral;
where the two disagree, the quote is refused and the disagreement is a finding of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import dcap_qvl  # type: ignore[import-untyped]

from fastness.crypto.x509 import Certificate

# How it refuses a domain that takes exceptions for pages that the host took away; there is no option to make it go on.
SEPT_VE_REFUSED: Final = "Verification failed: SEPT_VE_DISABLE is not enabled"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the other implementation says: a TCB status with advisories, or why it refuses."""

    status: str
    advisories: tuple[str, ...]
    refusal: str | None = None


def second_opinion(quote: bytes, collateral_json: str, root: Certificate, at: datetime) -> Opinion:
    """Verify a quote with dcap-qvl."""
    try:
        collateral = dcap_qvl.QuoteCollateralV3.from_json(collateral_json)
        # With our root and our time: by itself it would believe the root that is built into it, and the clock of this process.
        report = dcap_qvl.verify_with_root_ca(quote, collateral, root.der, int(at.timestamp()))
    # It has one type of error for all it finds; the text is shown to people and, but for one sentence, decides nothing.
    except ValueError as error:
        return Opinion("", (), str(error) or "refused without a reason")
    return Opinion(str(report.status), tuple(map(str, report.advisory_ids)))
