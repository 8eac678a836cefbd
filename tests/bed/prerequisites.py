"""What a bed needs of its machine, and what a test run does where that is missing.

| missing | on a developer's machine | with CI=true |
| --- | --- | --- |
| root, a package, the Kubernetes programs | skipped, with what to do | a failure: a skip would hide that nothing was tried |
| something of the kernel | skipped, with what it is | skipped, with what it is: nothing that a run installs could help |
"""

from __future__ import annotations

import os
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.bed import janitor
from tests.bed.space import KINDS
from tools.components import BED, missing

CONTROLLERS = frozenset({"cpu", "cpuacct", "cpuset", "devices", "memory", "pids"})
PROBE_SECONDS = 60.0
# Each step names what it needs before it tries it, so that the last name is the reason.
PROBE = """
trap 'test $? = 0 || echo "$need"' EXIT
need='bridges and veth pairs'; ip link add bed0 type bridge; ip link add left type veth peer name right
need='mounts of tmpfs and sysfs'; mount -t tmpfs tmpfs /run; mount -t sysfs sysfs /sys
need='overlayfs in the directory of temporary files'
cd {directory}; mkdir lower upper work merged
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay merged
need='nftables with address translation'
nft add table ip bed; nft 'add chain ip bed nat {{ type nat hook prerouting priority -100; }}'
"""


def needs_of_user() -> str | None:
    """What whoever runs the tests can provide and has not; None when all is there."""
    if os.geteuid() != 0:
        return "a bed has namespaces and control groups of its own: run the tests as root"
    absent = missing(BED)
    if absent:
        return f"a bed needs {', '.join(part.program for part in absent)}: run `python tools/components.py`"
    return None


def needs_of_kernel(directory: Path) -> str | None:
    """What this kernel does not allow, tried in an empty directory; None when it allows all."""
    absent = CONTROLLERS - {part for name in janitor.mounted_controllers() for part in name.split(",")}
    if absent:
        return f"a bed needs control groups of version 1; here is no {', '.join(sorted(absent))}"
    if not os.access("/dev/kmsg", os.R_OK):
        return "a bed needs /dev/kmsg, where a kubelet reads what ran out of memory"
    refused = _refused_group()
    return refused or _refused_step(directory)


def _refused_group() -> str | None:
    """A controller that takes no new group."""
    for root in janitor.mounted_controllers().values():
        group = root / janitor.group_name(os.getpid()) / "probe"
        try:
            group.mkdir(parents=True, exist_ok=True)
            group.rmdir()
            with suppress(OSError):  # a bed of this run is in there
                group.parent.rmdir()
        except OSError as error:
            return f"a bed needs control groups that it may write: {group}: {error.strerror}"
    return None


def _refused_step(directory: Path) -> str | None:
    """A step of the probe that fails in namespaces of its own."""
    script = PROBE.format(directory=shlex.quote(str(directory)))
    try:
        done = subprocess.run(
            ["unshare", *KINDS, "/bin/sh", "-euc", script],
            capture_output=True, text=True, check=False, timeout=PROBE_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"a bed needs namespaces; none answered in {PROBE_SECONDS:.0f} s"
    if done.returncode == 0:
        return None
    return f"a bed needs {done.stdout.strip() or 'namespaces of all kinds'}: {done.stderr.strip()}"
