"""Real machines beside the virtual ones: QEMU with OVMF and a software TPM boots an image that carries the agent and Ignition.

    guest.py      What runs inside of a real machine and is no part of the agent
    image.py      The image that real machines boot: one unified kernel image for all machines of a cluster
    initrd.py     The initial file system of a real machine: agent, Ignition, tpm2-tools, one script
    parts.py      What a real machine is made of: programs and firmware of this host, and a kernel of the distribution
    qemu.py       One real machine: a disk that boots, a TPM with a state of its own, a second disk for its key
    root_disk.py  The disk of a real machine with a root of its own
    running.py    The real machines of `fastness up --vms N`, for the time of a block
    trusted.py    What a cluster believes of its real machines, and for how long

Nothing about them is simulated but the silicon of the TPM: firmware measures, the event log is the firmware's, the quote is the
TPM's, and what they may measure was computed from the image before any of them booted it. The root of their TPMs is a local
authority that stands in `extraRoots` only because `fastness up --vms` put it there, for as long as it runs.
"""
