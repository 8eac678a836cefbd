"""What a TPM 2.0 signs and how: quotes, signatures, and the envelope that carries them.

    algorithms.py  The TCG's numbers for algorithms, as far as evidence uses them
    attest.py      TPMS_ATTEST of type quote: what a TPM signs about its registers
    envelope.py    The JSON that carries a TPM quote
    public.py      TPMT_PUBLIC: what a TPM says about one of its keys, and the name that follows from it
    signature.py   TPMT_SIGNATURE: the scheme, the hash and the numbers of a signature

Parsing proves nothing: `crypto/silicon/verify.py` checks the signature and `attestation/evidence/tpm.py` judges the fields.
"""
