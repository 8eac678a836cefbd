"""What was proved about a machine, in a few plain words: its attested properties.

    tee              tpm, snp or tdx
    endorsement      how it was shown that the machine's key lives where it says (`subject.Endorsement`)
    image            the approved images whose values it measured, by digest, joined by commas
    image-parts      where no single image explains it: those that do together, as a new boot loader with an old kernel
    chip-generation  Milan, Genoa, Turin; for TDX the family of the platform (FMSPC)
    tcb-…            security versions: bootloader, tee, snp, microcode, fmc; for TDX evaluation and date

They come from the claims of one authentic appraisal, and the endorsement from the enrolment. The verifier writes them on the
Machine together with the outcome; tokens carry them. Distrust, node labels and overlays compare with them, so none of them reads
evidence again.

* What was not proved is not there: an absent property is never equal to anything.
* Values are short texts without blanks, so that each fits a label or says so (`label_value`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fastness.attestation.values.measured import COMPARED
from fastness.attestation.values.values import ReferenceValues
from fastness.kinds.trusted_execution.properties import (
    ENDORSEMENT,
    GENERATION,
    IMAGE,
    PARTS,
    SNP_TCB,
    TCB,
    TDX_DATE,
    TDX_EVALUATION,
    TEE,
)

MOST_VALUE: Final = 512
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
_SHORT_DIGEST: Final = 40


def properties_of(tee: str, claims: Mapping[str, Any], book: ReferenceValues, endorsement: str = "") -> dict[str, str]:
    """The properties that claims of an authentic appraisal prove, of a machine whose key is endorsed in this way."""
    whole, parts = measured_images(tee, claims, book)
    found = {
        TEE: tee,
        ENDORSEMENT: endorsement,
        IMAGE: ",".join(whole),
        PARTS: ",".join(parts),
        **_platform(tee, claims.get(tee)),
    }
    return {name: value[:MOST_VALUE] for name, value in sorted(found.items()) if value}


def measured_images(tee: str, claims: Mapping[str, Any], book: ReferenceValues) -> tuple[list[str], list[str]]:
    """The images that a machine booted, each in every register that it has a value for; else those that it is mixed of."""
    registers = [
        (
            book.images(compared.name, str(_at(claims, compared.claim))),
            book.images_by_name.get(compared.name, frozenset()),
        )
        for compared in COMPARED.get(tee, ())
    ]
    fitting = frozenset[str]().union(*(same for same, _ in registers))
    whole = fitting.difference(*(known - same for same, known in registers))
    return (sorted(whole), []) if whole else ([], sorted(_mixed([same for same, _ in registers if same])))


def images_in(properties: Mapping[str, str]) -> list[str]:
    """All images that a machine is made of, whole or in parts."""
    return [one for name in (IMAGE, PARTS) for one in properties.get(name, "").split(",") if one]


def _mixed(owners: Sequence[frozenset[str]]) -> set[str]:
    """The images that explain registers together: those that alone have a value first, the others only where needed."""
    chosen = {one for images in owners if len(images) == 1 for one in images}
    for images in owners:
        chosen |= set() if images & chosen else images
    return chosen


def label_value(value: str) -> str:
    """A property as the value of a label; empty when it cannot be one. Digests of images are cut to 40 digits."""
    digest = value.rpartition("@sha256:")[2]
    text = digest[:_SHORT_DIGEST] if "@sha256:" in value else value.replace(":", "-")
    return text if _LABEL.match(text) and "," not in value else ""


def _platform(tee: str, claims: Any) -> dict[str, str]:
    said = claims if isinstance(claims, dict) else {}
    if tee == "snp":
        parts = {f"{TCB}{part}": said.get(f"reported_tcb_{part}") for part in SNP_TCB}
        return {GENERATION: str(said.get("generation") or ""), **_texts(parts.items())}
    if tee == "tdx":
        date = str(said.get("tcb_date") or "")
        return {
            GENERATION: str(said.get("fmspc") or ""),
            **_texts(((TDX_EVALUATION, said.get("tcb_eval_num")),)),
            TDX_DATE: date,
        }
    return {}


def _texts(pairs: Iterable[tuple[str, object]]) -> dict[str, str]:
    return {name: str(value) for name, value in pairs if type(value) is int}


def _at(claims: Any, path: Iterable[str]) -> Any:
    for key in path:
        claims = claims.get(key) if isinstance(claims, Mapping) else None
    return claims
