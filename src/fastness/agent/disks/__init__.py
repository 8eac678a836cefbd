"""Volumes that only a proven machine opens: made, opened and given a new key in the initial file system, without cryptsetup.

    block_device.py   A disk, or a file that stands for one: whole reads and writes, and errors that say which
    device_mapper.py  The kernel's device mapper: the few ioctls by which a mapping is made, read back and removed
    entropy.py        Randomness of the kernel, and nothing else of a process
    errors.py         Why a volume was not made, opened or given a new key
    formatting.py     Making a volume: slots, tags, and the header last
    header_writer.py  Writing a header: always over the copy that does not count yet
    keyslots.py       The slots of a header: what a disk key opens, and a new one
    mapping.py        From a volume key to a device: what is asked of the kernel, and what it answered
    opening.py        Opening a volume: everything read once, checked, opened from that copy
    ports.py          What this package needs of a machine: a disk, and the kernel's mapper
    rekeying.py       A new key for a volume: add, prove, remove, at any moment a power cut
    rules.py          What may be opened: the rules about a header, and the comparison with what was recorded
    tables.py         Tables of the device mapper: written, and compared with those of the kernel
    volume.py         What callers pass and get: keys, settings, facts about a header

The disk belongs to the host: it may answer a second read differently, put an old header back, or never store what was written. So
nothing is read twice (`opening`), nothing is opened that is not on the list (`rules`), and what the kernel really does is read
back (`mapping`). Whatever fails raises `DiskError`; there is no way on without encryption.
"""
