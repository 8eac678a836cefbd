"""Vendors' chains, TPM credentials, Authenticode.

authenticode.py    Verifying the signature of a boot image the way firmware does
chains.py          Chains of silicon vendors: from the key that signed evidence to a root that is pinned
credential.py      TPM2_MakeCredential in software: a secret that only one TPM opens, and only for one of its keys
dcap.py            A second opinion on TDX quotes, by an implementation that shares no code with ours
ek_certificate.py  What the certificate of an endorsement key says: which TPM, made by whom, and for what the key may be used
pins.py            The silicon vendors' roots, pinned by the SHA-256 of the certificate
registers.py       Measurement registers: values that can only be extended
revocation.py      Revocation lists of silicon vendors
verify.py          Signatures on evidence: each with the algorithm that its format fixes
"""
