"""Disks that only a proven machine opens: their keys, what machines report of them, and how both end.

volumes.py   Which encrypted volume a Machine has, or shall have, and why not
keyring.py   The keys of a Machine's volumes as they lie in a Secret, and the answer that a machine gets
reports.py   What a report of an opened volume means: recorded, an old copy, another disk
told.py      A Machine's volumes in words, for every surface
live/        The Secrets that hold the keys
loops/       Keys are made, replaced and destroyed

A key is 256 random bits, sealed by the vault of the broker, which alone makes and opens it. The controllers hold a Machine with a
finalizer before it gets one, and destroy its keys, on the record, before it goes. `attestation.live.unlocking` says who may have
a key, `release.authorise` that nobody else may.
"""
