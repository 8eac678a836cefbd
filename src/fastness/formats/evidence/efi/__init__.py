"""What UEFI firmware keeps: GUIDs, variables in their stores, and lists of signatures.

`guid` names things, `variables` reads the store of a firmware image (EDK2) and writes the bytes that firmware hashes for a
variable, `siglists` walks PK, KEK, db and dbx.
"""
