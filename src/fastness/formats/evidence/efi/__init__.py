"""What UEFI firmware keeps: GUIDs, variables in their stores, and lists of signatures.

gpt.py              The partition table of a disk (GPT), and what firmware measures of it
signature_lists.py  EFI_SIGNATURE_LIST: what PK, KEK, db and dbx hold, and the GUIDs that measured boot needs
variables.py        Variables of UEFI firmware: the store in a firmware image, and the bytes that a measurement of one covers
"""
