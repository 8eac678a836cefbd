"""Names of attested properties that a Machine carries (`status.properties`).

`attestation.verdict.properties` says what each means.
"""

from __future__ import annotations

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
