"""Quotes of Intel TDX and the collateral that they are judged by.

    body.py        The TD report (584 bytes for TDX 1.0, 648 for 1.5) and the enclave report of the quoting enclave (384 bytes)
    collateral.py  Intel's documents about platforms: TCB information, enclave identities, revocation lists, and who signed them
    pck.py         What Intel writes into the certificate of a platform's provisioning key (PCK)
    quote.py       A TDX quote, version 4 or 5, with its signature section (Intel DCAP quoting library, "quote format")

`crypto/silicon/chains.py` checks signatures, `attestation/evidence/tdx.py` judges.
"""
