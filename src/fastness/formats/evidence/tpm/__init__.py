"""What a TPM 2.0 signs and how: quotes, signatures, and the envelope that carries them.

`attest` reads TPMS_ATTEST, `signature` reads TPMT_SIGNATURE, `envelope` reads the JSON that agents send. Parsing proves
nothing: `fastness.crypto.silicon.verify` checks the signature and `fastness.attestation.evidence.tpm` judges the fields.
"""
