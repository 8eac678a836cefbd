"""What runs inside of a real machine and is no part of the agent: the way to the doors, and the root that is sealed.

* `FORWARD` leads each port of the doors on the machine's loopback to where QEMU leads on to the host. It runs in the initial
  file system, and again in the root.
* `SEALED` tells the kernel's device mapper to compare every block of the root disk with the hash that the command line names.
  The disk is found by a name that its host gave it, which proves nothing and need not: another disk gives errors.
"""

from __future__ import annotations

from typing import Final

from fastness.images.verity import BLOCK

AGENT: Final = "usr/lib/fastness/agent"
DOORS: Final = "10.0.2.100"
FORWARDER: Final = "usr/lib/fastness/machine/forward.py"
OPENER: Final = "usr/lib/fastness/machine/sealed_root.py"
ROOT_DISK: Final = "root"
# The number of blocks is measured, too: the shape of the tree follows from it.
ROOT_HASH, ROOT_BLOCKS = "roothash", "fastness.rootblocks"
DOORS_FILE: Final = "/run/fastness/doors"
DOORS_UNIT: Final = "fastness-doors.service"

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

# include/uapi/linux/dm-ioctl.h: a head, one target, its words. Three calls make a device, load its table and let it work.
SEALED: Final = f"""
import fcntl, pathlib, struct, sys

HEAD, TARGET = struct.Struct("=3I3Ii3IQ128s129s7x"), struct.Struct("=QQiI16s")
CREATE, RESUME, LOAD = 3, 6, 9
READ_ONLY = 1

def call(control, command, body=b""):
    size = HEAD.size + len(body)
    head = HEAD.pack(4, 0, 0, size, HEAD.size, bool(body), 0, READ_ONLY if body else 0, 0, 0, 0, b"root", b"")
    fcntl.ioctl(control, 3 << 30 | HEAD.size << 16 | 0xFD << 8 | command, bytearray(head + body))

def disk():
    for block in sorted(pathlib.Path("/sys/block").glob("vd*")):
        if (block / "serial").read_text().strip("\\0\\n") == "{ROOT_DISK}":
            return "/dev/" + block.name
    sys.exit("no disk is named {ROOT_DISK}")

blocks, root = int(sys.argv[1]), sys.argv[2]
device = disk()
words = f"1 {{device}} {{device}} {BLOCK} {BLOCK} {{blocks}} {{blocks}} sha256 {{root}} -".encode() + bytes(1)
words += bytes(-len(words) % 8)
with open("/dev/mapper/control", "rb") as control:
    call(control, CREATE)
    call(control, LOAD, TARGET.pack(0, blocks * {BLOCK // 512}, 0, 0, b"verity") + words)
    call(control, RESUME)
"""

# Ordered before everything that waits for the network, because doors and API are nowhere else.
DOORS_SERVICE: Final = f"""\
[Unit]
Description=The way from this machine's loopback to the doors
DefaultDependencies=no
Before=network-online.target

[Service]
ExecStart=/bin/sh -c 'exec env LD_LIBRARY_PATH=/{AGENT}/lib/native /{AGENT}/bin/python3.* -I -B /{FORWARDER} $(cat {DOORS_FILE})'
Restart=always
RestartSec=1
"""
