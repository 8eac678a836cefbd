"""A real machine that measures its boot: QEMU with OVMF and swtpm, Debian's kernel, and a unified kernel image written by us.

`kernel` fetches the kernel, `initrd` packs busybox and tpm2-tools, `machine` boots an image and collects the registers, the
event log and a quote that answers our nonce. Emulation only (`-accel tcg`): a /dev/kvm that exists need not work.
"""
