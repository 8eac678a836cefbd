"""The hardware that vouches for a machine, and the directory with its identity.

boot_phase.py       Leaving the initial file system, said in a register and read back
configfs_tsm.py     Reports of the processor by way of the kernel's configfs: SEV-SNP and TDX guests (Linux 6.7 and later)
endorsement_key.py  The endorsement key of a TPM, and the certificates that its maker put into the TPM's memory
identity.py         The directory with a machine's identity: what may lie there, whose it must be, and how it gets to the disk
this_boot.py        What evidence needs of this boot later: events that the agent measured, volumes, init-data
tpm.py              A TPM by way of tpm2-tools: the machine's own (`device:/dev/tpmrm0`) or a software one (`swtpm:path=…`)
tpm_commands.py     One TPM, asked by tpm2-tools one operation at a time
"""
