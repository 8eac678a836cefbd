"""What UEFI firmware keeps: GUIDs, variables in their stores, and lists of signatures.

guid.py             GUIDs in EFI's mixed byte order, and those that measured boot needs
signature_lists.py  EFI_SIGNATURE_LIST: what PK, KEK, db and dbx hold (UEFI 2.10 §32.4.1)
variables.py        Variables of UEFI firmware: the store in a firmware image, and the bytes that a measurement of one covers
"""
