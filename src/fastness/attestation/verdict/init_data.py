"""What an init-data document that came with evidence says, and whether the processor signed it.

    checks, claims = judged(appraisal, document)

* A text that was sent is the one that the hardware signed, or the evidence is refused: the host started the machine with another.
* Where it is the user-data of a machine, the verdict shows what the machine was told, as it does for PCR 15 and RTMR 3. Nothing
  is compared with it: tickets change every day.
* The ticket is a secret: checks and claims have its digest. A document that was not read has no claims at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.attestation.evidence.checks import Appraisal, Check, Result
from fastness.attestation.policy.claims import init_data_bound
from fastness.crypto.silicon.registers import hashed
from fastness.formats.errors import UserDataError
from fastness.formats.initdata import InitData
from fastness.protocol.user_data import ENTRY, user_data_in
from fastness.protocol.user_data_event import sentence, words_of

USER_DATA: Final = "init-data user-data"
FIELDS: Final[Mapping[str, str]] = {"snp": "HOSTDATA", "tdx": "MRCONFIGID"}
"""What people call the field that holds the digest."""
_ELSEWHERE: Final = "the evidence"


def digest_of(document: InitData) -> bytes:
    """What the host gives to the processor for a document."""
    return hashed(document.algorithm, document.text)


def judged(appraisal: Appraisal, document: InitData) -> tuple[list[Check], Mapping[str, Any] | None]:
    """The checks about a document, and its entries as a policy may see them."""
    digest = digest_of(document)
    checks = [_binding(appraisal, digest)]
    try:
        user_data = user_data_in(document)
    except UserDataError as error:
        # No agent takes this, so whoever sends it is none.
        where, source = error.path or "/", FIELDS.get(appraisal.tee, _ELSEWHERE)
        refused = Check(USER_DATA, Result.FAIL, error.code, where, error.message, source, error.hint)
        return [*checks, refused], None
    if user_data is None:
        return checks, dict(document.data)
    words = words_of(user_data)
    # What nobody measured is not shown as something that a machine was told.
    if checks[0].result is Result.PASS and appraisal.tee in FIELDS:
        described = f"{sentence(words)}, init-data {document.algorithm}:{digest.hex()}"
        checks.append(Check(USER_DATA, Result.PASS, "ok", described, "", FIELDS[appraisal.tee], mandatory=False))
    return checks, {ENTRY: words}


def _binding(appraisal: Appraisal, digest: bytes) -> Check:
    # Without a document there is nothing to bind, and no claim of it either: leaving the text out must never open more than
    # sending it (pitfall 11).
    bound = init_data_bound(appraisal, digest)
    return Check(
        "init-data",
        Result.PASS if bound else Result.FAIL,
        "ok" if bound else "init-data-differs",
        digest.hex(),
        str(appraisal.claims.get("init_data", "")),
        FIELDS.get(appraisal.tee, _ELSEWHERE),
        "" if bound else "The text that was sent is not the one that the machine was started with.",
    )
