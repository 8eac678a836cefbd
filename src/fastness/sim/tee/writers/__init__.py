"""The bytes that software TEEs write.

asn1.py           Writing DER: the few element types that certificates and the vendors' extensions are made of
authority.py      Certificate authorities of the simulated vendor
eventlog.py       Writing event logs: the TCG crypto-agile records that `fastness.formats.evidence.eventlog` reads
keys.py           The keys of simulated chips and authorities, each with the one signature that its format fixes, and their seed
launch.py         Launch measurements: what the processor itself hashes before a confidential VM runs its first instruction
rsa.py            RSA keys that follow from a seed, quickly: multi-prime RSA (RFC 8017 §3) with signatures that repeat
tdx_documents.py  The documents that Intel's provisioning service would publish about simulated platforms
tdx_quote.py      Writing TDX quotes: trust domain report, quoting enclave report and signature section, versions 4 and 5
tpm2.py           Writing TPM 2.0 structures: public areas, names, quotes, signatures (TPM 2.0 Library, part 2)
uefi.py           What UEFI firmware measures on the way to a unified kernel image
"""
