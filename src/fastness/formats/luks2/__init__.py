"""LUKS2: the header of an encrypted volume, as bytes and back.

    binary.py      The first 4096 bytes of a copy: magic, sequence number, checksum, identity
    fields.py      Reading JSON members strictly: what a member must be, and where it stood
    header.py      Both copies of a header: read from the same bytes, written one by one
    integrity.py   The superblock of dm-integrity, where sectors carry tags
    metadata.py    What the JSON of a copy says: keyslots, segments, digests, tokens, settings

A header lies on a disk that its host writes, so every number in it is a claim. Parsing says only what the bytes mean; what may be
opened is decided by `agent/disks/rules`. Only headers of 16 KiB a copy are read: larger ones buy nothing but time to parse.
"""
