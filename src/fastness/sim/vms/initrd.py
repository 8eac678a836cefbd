"""The initial file system of a real machine: the agent with its own Python, Ignition, tpm2-tools, busybox, and one script.

The archive (newc) is the same for the same input: no times, no owners, sorted names. What belongs to one machine and not to the
image, its user-data and where the doors are, comes over the serial port when the script asks for it: the image can be approved
once for all machines. User-data is for the agent; Ignition follows the pointer that the image carries.

* The doors are told to machines by the addresses of this host. A forwarder on the machine's loopback leads each of their ports to
  10.0.2.100, from where QEMU leads on to the host; the machine reaches nothing else.
* The key that the machine enrolled with is wrapped by its TPM and lies on its second disk, as a bare tar archive.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastness.agent.host.process import run
from fastness.protocol.pointer import SYSTEM_CONFIG, image_pointer
from fastness.sim.vms import parts

AGENT: Final = "usr/lib/fastness/agent"
DOORS: Final = "10.0.2.100"
TCTI: Final = "libtss2-tcti-device.so.0"
TOOLS: Final = (
    "activatecredential", "createak", "createek", "createprimary", "flushcontext", "getcap", "hmac", "load", "nvread",
    "pcrextend", "policysecret", "quote", "readpublic", "startauthsession",
)  # fmt: skip
USER_DATA, PORTS, BROKER = "@@USERDATA", "@@PORTS", "@@BROKER"
IGNITION_ENDED, AGENT_ENDED, STAYING = "@@IGNITION", "@@AGENT", "@@STAYING"
_DIRECTORY, _FILE, _LINK = 0o040755, 0o100755, 0o120777

FORWARD: Final = f"""
import asyncio, sys

async def copy(source, target):
    try:
        while piece := await source.read(65536):
            target.write(piece)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()

async def main(ports):
    async def lead(port, reader, writer):
        try:
            there = await asyncio.open_connection("{DOORS}", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
    for port in ports:
        await asyncio.start_server(lambda r, w, port=port: lead(port, r, w), "127.0.0.1", port)
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main([int(word) for word in sys.argv[1:]]))
"""

INIT: Final = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t securityfs sec /sys/kernel/security
mkdir -p /run
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
echo 1 > /proc/sys/kernel/printk
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
for name in {" ".join(parts.MODULES)}; do insmod /modules/$name.ko; done
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
mkdir -p /sysroot/etc/selinux /run/fastness
mkdir -m 700 /run/fastness/identity
echo SELINUXTYPE=targeted > /sysroot/etc/selinux/config
for disk in /dev/vda /dev/vdb; do tar xf $disk -C /run/fastness/identity 2>/dev/null; done
ask() {{ echo "$1" > /dev/ttyS0; while read -r line && [ -n "$line" ]; do echo "$line"; done | base64 -d; }}
ask {USER_DATA} > /run/user-data
ports=$(ask {PORTS})
broker=$(ask {BROKER})
python="env LD_LIBRARY_PATH=/{AGENT}/lib/native /{AGENT}/bin/python3 -I -B"
$python /{AGENT}/forward.py $ports > /run/forward 2>&1 &
until grep -q ready /run/forward; do sleep 0.1; done
/{AGENT}/bin/fastness-agent boot --user-data /run/user-data > /run/console 2>&1 &
agent=$!
common="-platform file -root /sysroot -log-to-stdout -config-cache /run/cache -state-file /run/state -neednet /run/neednet"
ignition $common -stage fetch > /run/ignition 2>&1 && ignition $common -stage files >> /run/ignition 2>&1
laid=$?
wait $agent
proved=$?
sed 's/^/agent: /' /run/console
[ $laid = 0 ] || tail -n 5 /run/ignition | sed 's/^/ignition: /'
for disk in /dev/vdb /dev/vda; do [ -w $disk ] && tar cf $disk -C /run/fastness/identity . 2>/dev/null && break; done
sync
echo "{IGNITION_ENDED} $laid"
echo "{AGENT_ENDED} $proved"
if [ $laid = 0 ] && [ $proved = 0 ]; then
    echo "{STAYING} $(find /sysroot ! -type d | wc -l)"
    /{AGENT}/bin/fastness-agent attest --broker $broker 2>&1
fi
poweroff -f
"""


def initrd(agent: Path, trust: bytes) -> bytes:
    """The compressed archive for the machines of one cluster; `agent` is the agent's own directory; raises NoRealMachine."""
    links = {"bin/sh": "busybox", **{f"bin/tpm2_{name}": "tpm2" for name in TOOLS}}
    files = {f"{AGENT}/{path.relative_to(agent)}": path.read_bytes() for path in agent.rglob("*") if path.is_file()}
    (python,) = (path.name for path in (agent / "bin").glob("python3.*"))
    links[f"{AGENT}/bin/python3"] = python
    programs = {"bin/busybox": parts.BUSYBOX, "bin/tpm2": parts.TPM2, "bin/ignition": parts.IGNITION}
    files |= {name: path.read_bytes() for name, path in programs.items()}
    files |= {f"modules/{name}.ko": data for name, data in parts.modules().items()}
    files |= {path.lstrip("/"): Path(path).read_bytes() for path in shared_libraries()}
    files |= {
        "init": INIT.encode(), "bin/setfiles": b"#!/bin/sh\nexit 0\n", f"{AGENT}/forward.py": FORWARD.encode(),
        "usr/lib/fastness/trust.json": trust, SYSTEM_CONFIG: image_pointer(),
    }  # fmt: skip
    return gzip.compress(archive(files, links), 6, mtime=0)


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


def tpm_libraries() -> set[str]:
    """The shared libraries of tpm2-tools, with the one by which they reach a device; raises NoRealMachine."""
    libraries = _needed(parts.TPM2)
    device = next((path.with_name(TCTI) for path in map(Path, sorted(libraries)) if "libtss2-esys" in path.name), None)
    if device is None or not device.exists():
        raise parts.NoRealMachine(f"{TCTI} is not installed", "It comes with the package tpm2-tools.")
    return libraries | _needed(device) | {str(device)}


def shared_libraries() -> set[str]:
    """Libraries of the programs, and those of the C library that the agent's Python finds in every image."""
    libraries = tpm_libraries() | _needed(parts.IGNITION)
    (libc,) = (path for path in libraries if path.endswith("/libc.so.6"))
    names = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2")
    return libraries | {str(Path(libc).with_name(name)) for name in names}


def _needed(program: Path) -> set[str]:
    return set(re.findall(r"(?:=> |^\t)(/\S+) \(0x", run(["ldd", str(program)]), re.MULTILINE))
