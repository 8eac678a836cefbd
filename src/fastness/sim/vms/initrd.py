"""The initial file system of a real machine: the agent with its own Python, Ignition, tpm2-tools, busybox, and one script.

The archive (newc) is the same for the same input: no times, no owners, sorted names. What belongs to one machine and not to the
image, its user-data and where the doors are, comes over the serial port when the script asks for it: the image can be approved
once for all machines. User-data is for the agent; Ignition follows the pointer that the image carries.

* The doors are told to machines by the addresses of this host. A forwarder on the machine's loopback leads each of their ports to
  10.0.2.100, from where QEMU leads on to the host; the machine reaches nothing else.
* The key that the machine enrolled with is wrapped by its TPM and lies on its second disk, as a bare tar archive.
* Where the pool has an encrypted volume the image says so (volumes.json), and a third disk is that volume. The second then holds
  the note; a machine whose note is there opens its volume by proof, and one whose volume does not open powers off.
* The volume is /var below the new root, or the new root itself; that one is filled with a small tree of the image at first.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastness.agent.boot.volumes import ROOT
from fastness.agent.host.process import run
from fastness.formats import json
from fastness.protocol.pointer import SYSTEM_CONFIG, image_pointer
from fastness.sim.vms import parts
from fastness.sim.vms.guest import AGENT, DOORS_FILE, FORWARD, FORWARDER, OPENER, ROOT_BLOCKS, ROOT_HASH, SEALED

TCTI: Final = "libtss2-tcti-device.so.0"
TOOLS: Final = (
    "activatecredential", "create", "createek", "createprimary", "flushcontext", "getcap", "hmac", "load", "nvread",
    "pcrevent", "pcrextend", "pcrread", "policysecret", "quote", "readpublic", "startauthsession",
)  # fmt: skip
USER_DATA, PORTS, BROKER = "@@USERDATA", "@@PORTS", "@@BROKER"
IGNITION_ENDED, AGENT_ENDED, STAYING, GOING_ON = "@@IGNITION", "@@AGENT", "@@STAYING", "@@GOING-ON"
OPENED, CLOSED, DAMAGED = "@@OPENED", "@@CLOSED", "@@DAMAGED"
VOLUMES: Final = "usr/lib/fastness/volumes.json"
ROOT_TREE: Final = "usr/lib/fastness/root"
ROOT_FILES: Final = {f"{ROOT_TREE}/etc/os-release": b'ID=fastness\nPRETTY_NAME="Real machine of fastness up"\n'}
VOLUME_SERIAL, NOTE_SERIAL = "fastness-volume", "fastness-note"
MKE2FS: Final = Path("/usr/sbin/mke2fs")
# What a kubelet may promise to pods: it starts only with more than it has to reserve, and memory is taken as files come.
VAR_SIZE: Final = "4g"
_DIRECTORY, _FILE, _LINK = 0o040755, 0o100755, 0o120777

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
for name in {" ".join((*parts.MODULES, *parts.DISK_MODULES, *parts.TAG_MODULES))}; do
    [ -f /modules/$name.ko ] && insmod /modules/$name.ko
done
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
python="env LD_LIBRARY_PATH=/{AGENT}/lib/native /{AGENT}/bin/python3 -I -B"
mkdir -p /sysroot
word() {{ sed -n "s/.*$1=\\([0-9a-f]*\\).*/\\1/p" /proc/cmdline; }}
sealed=$(word {ROOT_HASH})
if [ -n "$sealed" ]; then
    for name in {" ".join(parts.ROOT_MODULES)}; do insmod /modules/$name.ko; done
    mkdir -p /measured /memory
    $python /{OPENER} $(word {ROOT_BLOCKS}) $sealed && mount -t ext4 -o ro /dev/dm-0 /measured || poweroff -f
    mount -t tmpfs -o mode=755 memory /memory
    mkdir /memory/upper /memory/work
    mount -t overlay -o lowerdir=/measured,upperdir=/memory/upper,workdir=/memory/work root /sysroot
    mount -t tmpfs -o mode=755,size={VAR_SIZE} var /sysroot/var
    cp -a /measured/var/. /sysroot/var
fi
mkdir -p /sysroot/etc/selinux /run/fastness
mkdir -m 700 /run/fastness/identity
echo SELINUXTYPE=targeted > /sysroot/etc/selinux/config
for disk in /dev/vda /dev/vdb; do tar xf $disk -C /run/fastness/identity 2>/dev/null; done
ask() {{ echo "$1" > /dev/ttyS0; while read -r line && [ -n "$line" ]; do echo "$line"; done | base64 -d; }}
ask {USER_DATA} > /run/user-data
ports=$(ask {PORTS})
broker=$(ask {BROKER})
$python /{FORWARDER} $ports > /run/forward 2>&1 &
forwarder=$!
until grep -q ready /run/forward; do sleep 0.1; done
for block in /sys/block/vd*; do ln -s ${{block##*/}} /dev/$(cat $block/serial) 2>/dev/null; done
agent=/{AGENT}/bin/fastness-agent
[ -f /{ROOT_TREE}/etc/os-release ] && volume=root place=/sysroot || volume=var place=/sysroot/var
enter() {{ mkdir -p $place && mount -t ext4 /run/fastness/opened/$volume $place; }}
identity=/sysroot/var/lib/fastness/identity
if [ -f /{VOLUMES} ] && [ "$(dd if=/dev/{NOTE_SERIAL} bs=6 count=1 2>/dev/null)" = FNOTE1 ]; then
    if $agent unlock --note /dev/{NOTE_SERIAL} 2>&1 && enter && $agent leave-initrd 2>&1; then
        echo "{OPENED} $volume $(tail -n 1 /sysroot/var/lib/fastness/generation)"
        # With tags every sector is read once: what the host changed is seen now and not when somebody needs it.
        opened=/dev/mapper/fastness-$volume
        [ ! -e ${{opened}}_dif ] || dd if=$opened of=/dev/null bs=64k || echo "{DAMAGED}"
        $agent attest --state $identity --broker $broker --note /dev/{NOTE_SERIAL} 2>&1
    else
        echo "{CLOSED}"
    fi
    poweroff -f
fi
$agent boot --user-data /run/user-data --note /dev/{NOTE_SERIAL} > /run/console 2>&1 &
running=$!
common="-platform file -root /sysroot -log-to-stdout -config-cache /run/cache -state-file /run/state -neednet /run/neednet"
selinux() {{ mkdir -p /sysroot/etc/selinux && echo SELINUXTYPE=targeted > /sysroot/etc/selinux/config; }}
ready() {{ [ ! -f /{VOLUMES} ] || {{ enter && selinux; }}; }}
ignition $common -stage fetch > /run/ignition 2>&1 && ready && ignition $common -stage files >> /run/ignition 2>&1
laid=$?
wait $running
proved=$?
sed 's/^/agent: /' /run/console
[ $laid = 0 ] || tail -n 5 /run/ignition | sed 's/^/ignition: /'
[ -f /{VOLUMES} ] || for disk in /dev/vdb /dev/vda; do
    [ -w $disk ] && tar cf $disk -C /run/fastness/identity . 2>/dev/null && break
done
sync
echo "{IGNITION_ENDED} $laid"
echo "{AGENT_ENDED} $proved"
if [ $laid = 0 ] && [ $proved = 0 ] && [ -n "$sealed" ]; then
    echo "{GOING_ON} $(find /memory/upper /sysroot/var ! -type d | wc -l)"
    kill $forwarder
    rm -r /sysroot/etc/selinux
    echo "$ports" > {DOORS_FILE}
    echo uninitialized > /sysroot/etc/machine-id
    cp /usr/lib/fastness/trust.json /sysroot/usr/lib/fastness/trust.json
    for place in dev proc sys run; do mount --move /$place /sysroot/$place; done
    exec switch_root /sysroot /usr/lib/systemd/systemd
elif [ $laid = 0 ] && [ $proved = 0 ]; then
    echo "{STAYING} $(find /sysroot ! -type d | wc -l)"
    state=/run/fastness/identity
    if [ -f /{VOLUMES} ]; then
        mkdir -p -m 700 ${{identity%/*}}
        $agent keep-identity --to $identity && $agent leave-initrd && state=$identity || poweroff -f
        sync
        echo "{OPENED} $volume $(tail -n 1 /sysroot/var/lib/fastness/generation)"
    fi
    $agent attest --state $state --broker $broker 2>&1
fi
poweroff -f
"""


def initrd(agent: Path, trust: bytes, volume: str = "") -> bytes:
    """The compressed archive for the machines of one cluster, with an encrypted volume or none; raises NoRealMachine.

    `agent` is the agent's own directory.
    """
    links = {"bin/sh": "busybox", **{f"bin/tpm2_{name}": "tpm2" for name in TOOLS}}
    files = {f"{AGENT}/{path.relative_to(agent)}": path.read_bytes() for path in agent.rglob("*") if path.is_file()}
    (python,) = (path.name for path in (agent / "bin").glob("python3.*"))
    links[f"{AGENT}/bin/python3"] = python
    programs = {"bin/busybox": parts.BUSYBOX, "bin/tpm2": parts.TPM2, "bin/ignition": parts.IGNITION}
    files |= {name: path.read_bytes() for name, path in programs.items()}
    loaded: tuple[str, ...] = (*parts.MODULES, *parts.ROOT_MODULES)
    libraries = shared_libraries()
    if volume:
        loaded = (*loaded, *parts.DISK_MODULES, *parts.TAG_MODULES)
        files |= {"sbin/mke2fs": MKE2FS.read_bytes(), VOLUMES: json.encode({volume: f"/dev/{VOLUME_SERIAL}"})}
        libraries |= _needed(MKE2FS)
    if volume == ROOT:
        files |= ROOT_FILES
    files |= {f"modules/{name}.ko": data for name, data in parts.modules(loaded).items()}
    files |= {path.lstrip("/"): Path(path).read_bytes() for path in libraries}
    files |= {
        "init": INIT.encode(), "bin/setfiles": b"#!/bin/sh\nexit 0\n", FORWARDER: FORWARD.encode(),
        OPENER: SEALED.encode(),
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
