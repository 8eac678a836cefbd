"""Quotes of Intel TDX and the collateral that they are judged by.

`quote` reads versions 4 and 5 with the signature section, `body` the TD report inside, `collateral` the signed documents of
Intel's provisioning service. `fastness.crypto.silicon.chains` checks signatures, `fastness.attestation.evidence.tdx` judges.
"""
