"""What was proved about a machine, in a few plain words: the attested properties that a Machine carries (`status.properties`).

    tee              tpm, snp or tdx
    endorsement      how it was shown that the machine's key lives where it says (`subject.Endorsement`)
    image            the approved images whose values it measured, by digest, joined by commas
    image-parts      where no single image explains it: those that do together, as a new boot loader with an old kernel
    chip-generation  Milan, Genoa, Turin; for TDX the family of the platform (FMSPC)
    tcb-…            security versions: bootloader, tee, snp, microcode, fmc; for TDX evaluation and date

`attestation.verdict.conclude` makes them of claims. Values are short texts without blanks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TEE: Final = "tee"
ENDORSEMENT: Final = "endorsement"
IMAGE: Final = "image"
PARTS: Final = "image-parts"
GENERATION: Final = "chip-generation"
TCB: Final = "tcb-"
SNP_TCB: Final = ("bootloader", "tee", "snp", "microcode", "fmc")
TDX_EVALUATION: Final = f"{TCB}evaluation"
TDX_DATE: Final = f"{TCB}date"


def images_in(properties: Mapping[str, str]) -> list[str]:
    """All images that a machine is made of, whole or in parts."""
    return [image for name in (IMAGE, PARTS) for image in properties.get(name, "").split(",") if image]
