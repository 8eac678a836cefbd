"""Evidence and what it is made of, as bytes.

efi/         What UEFI firmware keeps: GUIDs, variables in their stores, and lists of signatures
envelope.py  The wrappings of evidence, recognised by content: raw bytes, hexadecimal, base64, JSON
eventlog/    Event logs of measured boot: what was extended into which register, in order
pe/          Programs of UEFI firmware: PE/COFF images, what a signature covers, and the sections of unified kernel images
snp/         The attestation report of AMD SEV-SNP, byte for byte
tdx/         Quotes of Intel TDX and the collateral that they are judged by
tpm/         What a TPM 2.0 signs and how: quotes, signatures, and the envelope that carries them
"""
