"""The image of a machine that boots with its own systemd: a root directory, before and after `fastness machine image`.

    begin(root, kubelet, registry, subnet)     # a Debian with kubelet, containerd, network plug-ins
    …                                          # fastness machine image root --shape debian …
    lend(root)                                 # what the machine lacks because it shares its kernel with others

The directory holds only what differs from the Debian that runs the tests, whose /usr and /etc lie below it (`machine.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

from tests.bed import settings
from tests.bed.space import command

AGENT = "usr/lib/fastness/agent/bin/fastness-agent"
TPM = "/srv/machine/tpmrm"  # by this name the agent knows that somebody looks after what programs leave behind
USER_DATA = "/srv/machine/user-data"
LOCK = "/srv/machine/tpm.lock"
EVENT_LOG = "/srv/machine/event-log"
# The kubelet of a machine that has neither a kernel nor a disk of its own; read last, as every setting of a measured image is.
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "evictionHard": {"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
    "failCgroupV1": False,
    "imageGCHighThresholdPercent": 100,
    "nodeStatusUpdateFrequency": "2s",
    "oomScoreAdj": 0,
    "resolvConf": "/run/resolv.conf",
}
# After those of Ignition. Without it a first boot starts whatever the Debian below has installed, and waits for its network.
PRESETS = "disable *\n"
# No TPM of a kernel can be lent to a namespace, so this one is a program behind a socket.
AGENT_PROGRAM = f"""#!/bin/sh
case $1 in
    boot) set -- "$@" --user-data {USER_DATA} --tpm swtpm:path={TPM}/sock --event-log {EVENT_LOG} ;;
    join | attest | run) set -- "$@" --tpm swtpm:path={TPM}/sock --event-log {EVENT_LOG} ;;
esac
exec /{AGENT}.launcher "$@"
"""
# A kernel forgets what a program loaded into its TPM when that program ends; so does this, one program at a time.
TPM_TOOLS = f"""#!/bin/sh
exec 9< {LOCK}
flock 9
/usr/lib/bed/tpm2 "${{0##*/tpm2_}}" "$@" && code=0 || code=$?
while [ $# -gt 0 ] && [ "$1" != -T ]; do shift; done
[ $# -lt 2 ] || /usr/lib/bed/tpm2 flushcontext -Q -T "$2" -t < /dev/null > /dev/null 2>&1
exit $code
"""
# Lowering a score needs a capability that machines of tests lack; runc would end without a word.
RUNC = """#!/bin/sh
before=
for word in "$@"; do
    [ "$before" != --bundle ] || sed -i 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "$word/config.json"
    before=$word
done
exec /usr/lib/bed/runc "$@"
"""
# systemd does not look after these controllers where they stand alone, and the kubelet wants the group of the system's services
# in each of them.
PROCESSORS = """[Unit]
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mkdir -p /sys/fs/cgroup/cpuset/system.slice /sys/fs/cgroup/cpuacct/system.slice'
"""


def begin(root: Path, kubelet: Path, registry: str, subnet: str) -> None:
    """A Debian that has kubelet, containerd and network plug-ins, in an empty directory."""
    files = {
        "etc/kernel/cmdline": "console=ttyS0 quiet\n",
        "etc/fstab": "",
        "etc/hostname": "machine\n",
        "etc/selinux/config": "SELINUXTYPE=targeted\n",
        "etc/cni/net.d/10-bed.conflist": settings.pod_network(subnet),
        "etc/containerd/certs.d/_default/hosts.toml": settings.registry_hosts(registry),
        "usr/lib/fastness/kubelet.conf.d/50-shared-kernel.conf": json.dumps(KUBELET),
        "usr/lib/systemd/system-preset/30-image.preset": PRESETS,
        "usr/lib/systemd/system/shared-kernel.service": PROCESSORS,
    }
    for name, text in files.items():
        _write(root / name, text)
    programs = {"usr/sbin/runc": RUNC, "usr/bin/tpm2": TPM_TOOLS, "usr/lib/bed/setfiles": "#!/bin/sh\n"}
    for name, text in programs.items():
        _write(root / name, text, 0o755)
    for name in ("runc", "tpm2"):
        shutil.copy(command(name), root / "usr/lib/bed" / name)
    shutil.copy("/usr/lib/os-release", root / "usr/lib/os-release")
    shutil.copy(kubelet, root / "usr/bin/kubelet")
    (root / "opt/cni").mkdir(parents=True)
    (root / "opt/cni/bin").symlink_to("/usr/lib/cni")
    wants = root / "usr/lib/systemd/system/sysinit.target.wants"
    wants.mkdir()
    (wants / "shared-kernel.service").symlink_to("../shared-kernel.service")


def lend(root: Path) -> None:
    """Lead the agent to a TPM behind a socket, and hide what belongs to the Debian below: its identity and its services."""
    program = root / AGENT
    program.rename(program.with_name(f"{program.name}.launcher"))
    _write(program, AGENT_PROGRAM, 0o755)
    (root / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    os.setxattr(root / "etc/systemd/system", "trusted.overlay.opaque", b"y")
    os.mknod(root / "etc/machine-id", stat.S_IFCHR, os.makedev(0, 0))  # how overlayfs writes that a file is gone


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
