"""The initial file system of the machine: busybox, tpm2-tools with their libraries, and one script.

The archive (newc) is the same for the same input: no times, no owners, sorted names. The script makes an attestation key,
waits for the nonce on the serial port, quotes, and prints everything as base64 between marks.
"""

from __future__ import annotations

import gzip
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

BUSYBOX = Path("/bin/busybox")
TPM2 = Path("/usr/bin/tpm2")
TCTI = "libtss2-tcti-device.so.0"
QUOTED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14)
_DIRECTORY, _FILE, _LINK = 0o040755, 0o100755, 0o120777

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
    files |= {path.lstrip("/"): Path(path).read_bytes() for path in libraries()}
    files |= {path.lstrip("/"): data for path, data in (extra or {}).items()}
    return gzip.compress(archive(files, {"bin/sh": "busybox"}), 6, mtime=0)


def libraries() -> list[str]:
    """Shared libraries of tpm2-tools, with the one that reaches the kernel's TPM."""
    table = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    tcti = re.search(rf"^\s*{re.escape(TCTI)} \(.*x86-64.*\) => (\S+)$", table, re.MULTILINE)
    assert tcti is not None, f"{TCTI} is not installed: it comes with tpm2-tools"
    found = {tcti[1]}
    for program in (str(TPM2), tcti[1]):
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        found |= set(re.findall(r"(?:=> |^\t)(/\S+) \(0x", listed, re.MULTILINE))
    return sorted(found)


def archive(files: Mapping[str, bytes], links: Mapping[str, str]) -> bytes:
    """A newc archive: programs by name, links by name."""
    parents = {str(parent) for name in [*files, *links] for parent in Path(name).parents} - {"."}
    empty = {"dev", "proc", "sys", "tmp"}
    entries = [(name, _DIRECTORY, b"") for name in sorted(parents | empty)]
    entries += [(name, _FILE, data) for name, data in sorted(files.items())]
    entries += [(name, _LINK, target.encode()) for name, target in sorted(links.items())]
    return b"".join(_entry(number, *entry) for number, entry in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1))


def _entry(number: int, name: str, mode: int, data: bytes) -> bytes:
    path = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % value for value in fields) + path
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
