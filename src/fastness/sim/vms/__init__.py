"""Real machines beside the virtual ones: QEMU with OVMF and a software TPM boots an image that carries the agent and Ignition.

Nothing about them is simulated but the silicon of the TPM: firmware measures, the event log is the firmware's, the quote is the
TPM's, and what they may measure was computed from the image before any of them booted it. The root of their TPMs is a local
authority that stands in `extraRoots` only because `fastness up --vms` put it there, for as long as it runs.

    parts     what must be installed, and the kernel
    initrd    the initial file system: agent, Ignition, tpm2-tools, one script
    image     the unified kernel image, and what it will measure
    qemu      one machine: its disk, its TPM, its serial port
    running   all of them, for the time of a block
"""
