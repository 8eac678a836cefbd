"""The hardware that vouches for a machine, and the directory with its identity.

configfs_tsm.py    Reports of the processor by way of the kernel's configfs: SEV-SNP and TDX guests (Linux 6.7 and later)
identity.py        The directory with a machine's identity: what may lie there, whose it must be, and how it gets to the disk
init_data_file.py  The init-data document that this boot took its user-data from, for whoever proves the machine later
runtime_log.py     What the agent measured after the kernel started: the kernel's own log of the boot ends before that
tpm.py             A TPM by way of tpm2-tools: the machine's own (`device:/dev/tpmrm0`) or a software one (`swtpm:path=…`)
"""
