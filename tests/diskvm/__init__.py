"""A machine with disks and nothing else: QEMU with Debian's kernel, our Python and `agent/disks`, without firmware or network.

`machine` packs the initial file system and boots; `inside` runs in the machine: it takes steps and tells how each went.
The kernel is started directly, so a boot takes about three seconds; nothing is measured.
"""
