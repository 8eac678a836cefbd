"""The initial file system of the machine: busybox, tpm2-tools with their libraries, and one script.

The script makes an attestation key,
waits for the nonce on the serial port, quotes, and prints everything as base64 between marks.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from fastness.sim.vms.initrd import archive, tpm_libraries
from fastness.sim.vms.parts import BUSYBOX, TPM2

QUOTED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14)

INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t securityfs sec /sys/kernel/security
mount -t tmpfs tmp /tmp
echo 1 > /proc/sys/kernel/printk
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
cd /tmp
give() {{ echo "@@BEGIN $1 $(wc -c < $2)"; base64 < $2; echo "@@END $1"; }}
export TPM2TOOLS_TCTI=device:/dev/tpmrm0
tpm2 createek -Q -G ecc -c ek.ctx -u ek.pub
tpm2 createak -Q -C ek.ctx -G ecc -g sha256 -s ecdsa -c ak.ctx -u ak.pub -f tss
tpm2 readpublic -Q -c ak.ctx -f der -o ak.der
echo "@@NONCE"
read nonce
tpm2 quote -Q -c ak.ctx -l sha256:{",".join(map(str, QUOTED))} -g sha256 -q $nonce -m message -s signature
for index in $(seq 0 23); do echo "$index $(cat /sys/class/tpm/tpm0/pcr-sha256/$index)"; done > registers
for name in ak.pub ak.der message signature registers; do give $name $name; done
give log /sys/kernel/security/tpm0/binary_bios_measurements
echo "@@DONE"
poweroff -f
"""


def initrd(extra: Mapping[str, bytes] | None = None) -> bytes:
    """The compressed archive; `extra` adds files by absolute path."""
    files = {"init": INIT.encode(), "bin/busybox": BUSYBOX.read_bytes(), "bin/tpm2": TPM2.read_bytes()}
    files |= {path.lstrip("/"): Path(path).read_bytes() for path in sorted(tpm_libraries())}
    files |= {path.lstrip("/"): data for path, data in (extra or {}).items()}
    return gzip.compress(archive(files, {"bin/sh": "busybox"}), 6, mtime=0)
