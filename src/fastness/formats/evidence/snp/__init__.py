"""The attestation report of AMD SEV-SNP, byte for byte.

`report` reads the 1184 bytes of versions 2 to 5 and names their bits, `tcb` knows which byte of a TCB version means what on
which generation of processors. Signature and certificates are checked in `fastness.crypto`, the fields are judged in
`fastness.attestation.evidence.snp`.
"""
