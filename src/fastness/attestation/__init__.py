"""Judging evidence: an ordered list of checks, and what they prove about a machine.

Formats parse, crypto verifies, this package validates. Each kind of evidence has one module with one function that takes parsed
evidence, certificates, expectations and a time, and returns an `Appraisal`. Nothing here reads a file or a clock, so a
verdict can be made again from its inputs.

| module | judges |
| --- | --- |
| `checks` | what a check and an appraisal are |
| `tpm` | quotes of a TPM 2.0 |
| `snp` | reports of AMD SEV-SNP |
| `tdx`, `collateral`, `tcb` | quotes of Intel TDX, the vendor's documents about them, and how new the platform is |
| `replay` | event logs against signed registers |
"""
