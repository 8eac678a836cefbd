"""The attestation report of AMD SEV-SNP, byte for byte.

    certificate_table.py  The certificates that a hypervisor hands to an SNP guest beside its report
    envelope.py           An SNP report as it travels: raw, or in JSON with its certificates
    report.py             The report: 1184 bytes, little-endian, signed over the first 672
    tcb.py                Generations of EPYC processors and the layout of their TCB versions
    vek.py                What AMD writes into the certificate of a versioned endorsement key (VCEK, VLEK)

Signature and certificates are checked in `crypto/silicon`, the fields are judged in `attestation/evidence/snp.py`.
"""
