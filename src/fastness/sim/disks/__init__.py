"""Encrypted volumes of virtual machines: files in their state that only a released key opens.

    container.py  The container: a volume key under slots, files under the volume key, marked as simulated
    opening.py    What the initial file system of a virtual machine does about its volumes: note, unlock session, phase

No block device and no LUKS2: what the host could read and change is one file, and the broker, the unlock session, the key, the
re-key and the generation are the real ones.
"""
