"""A sealed host in a machine: QEMU with OVMF and a TPM, systemd-boot, a repository of composefs with fs-verity, the real engines.

    root.py      The base that sealed images are built on: a small Debian with agent and engines, a kernel, an initial file system
    machine.py   Its disks, the boot that installs it, and one boot after the other, each with a way to ask what runs inside
    inside.py    What runs in the machine: it takes steps and tells how each went; the driver is the product's

The engines are built by `tools/engines.py`, so this is for the long form of the tests. Emulation only, as in tests/measuredboot.
"""
