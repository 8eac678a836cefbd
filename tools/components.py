"""The real components that tests talk to: install them where that is possible, say what is missing where it is not.

As root on Debian the packages are installed with apt; elsewhere the missing ones are named and the tests that need them are
skipped by name. With CI=true a missing component is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Component(NamedTuple):
    """A program, or a file by its full path, and the Debian package that brings it."""

    program: str
    package: str
    purpose: str


# What a bed of tests/bed is made of, beside the Kubernetes that tools/realkube.py builds.
BED = (
    Component("containerd", "containerd", "nodes run containers"),
    Component("runc", "runc", "the runtime of most of them"),
    Component("crun", "crun", "a second runtime, for runtime classes"),
    Component("/usr/lib/cni/bridge", "containernetworking-plugins", "networks of pods"),
    Component("nft", "nftables", "addresses of services"),
    Component("ip", "iproute2", "networks of nodes"),
    Component("docker-registry", "docker-registry", "a private registry"),
    Component("busybox", "busybox-static", "what runs in the containers"),
    Component("mmdebstrap", "mmdebstrap", "an image with Python"),
)
COMPONENTS = (
    Component("git", "git", "generated files are compared with the tree"),
    Component("ignition-validate", "ignition", "configs are compared with what Ignition accepts and writes"),
    Component("ostree", "ostree", "operating systems are deployed into a directory"),
    Component("systemctl", "systemd", "units of a directory are compared with the real systemctl"),
    Component("curl", "curl", "pages of the documentation ask doors by hand"),
    Component("jq", "jq", "commands of the manual read JSON with it"),
    Component("xxd", "xxd", "commands of the manual compute registers with it"),
    Component("envsubst", "gettext-base", "commands of the manual fill in files with it"),
    Component("mount", "mount", "tests with a full disk"),
    Component("swtpm", "swtpm", "a second TPM beside the software one"),
    Component("swtpm_setup", "swtpm-tools", "that TPM gets an endorsement key with a certificate"),
    Component("tpm2", "tpm2-tools", "quotes are made and checked by somebody else's code"),
    Component("chromium", "chromium", "the page is looked at in a real browser"),
    Component("nginx", "nginx-light", "the peer of the config server in benchmarks"),
    Component("qemu-system-x86_64", "qemu-system-x86", "a machine really boots what was measured"),
    Component("/usr/share/OVMF/OVMF_CODE.fd", "ovmf", "the firmware of that machine"),
    Component("/usr/lib/systemd/boot/efi/linuxx64.efi.stub", "systemd-boot-efi", "the boot stub of its kernel image"),
    Component("busybox", "busybox-static", "its initial disk"),
    Component("mformat", "mtools", "its boot disk"),
    Component("/usr/sbin/depmod", "kmod", "the modules of its kernel, where it has a root of its own"),
    Component("/usr/sbin/mkfs.ext4", "e2fsprogs", "the disk of that root"),
    Component("zstd", "zstd", "initial disks that distributions pack with it are looked at"),
    Component("sbsign", "sbsigntool", "images with a signature for Secure Boot"),
    Component("openssl", "openssl", "unlocks the test key that signs them"),
    Component("cryptsetup", "cryptsetup-bin", "volumes are made and opened by somebody else's code"),
    Component("/usr/sbin/mke2fs", "e2fsprogs", "file systems on opened volumes"),
    Component("promtool", "prometheus", "alerts of the chart are checked as Prometheus reads them"),
    Component("buildah", "buildah", "images of operating systems are built"),
    Component("dnf", "dnf", "packages are installed into images by the package manager of their base"),
    Component("rpmbuild", "rpm", "the packages for it are made"),
    Component("createrepo_c", "createrepo-c", "and put into a repository"),
    Component("clevis", "clevis", "roots of the Clevis pin are bound and opened by somebody else's code"),
    Component("clevis-luks-bind", "clevis-luks", "the part of it that knows disks"),
    Component("dracut", "dracut-core", "initial file systems with our module are built and booted"),
    Component(
        "/usr/lib/dracut/modules.d/45url-lib/module-setup.sh",
        "dracut-network",
        "what the module of Ignition asks of it",
    ),
    Component("skopeo", "skopeo", "images are pulled as the container runtime would, with the files made for it"),
    *BED,
)


def missing(components: Sequence[Component] = COMPONENTS) -> list[Component]:
    """The components that are not there."""
    return [component for component in components if not _present(component.program)]


def _present(program: str) -> bool:
    """Whether a program is on the path, or a file is where its package puts it."""
    return Path(program).exists() if program.startswith("/") else shutil.which(program) is not None


def can_install() -> bool:
    """Whether this is root on a Debian with apt."""
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def install(packages: list[str]) -> None:
    """Install Debian packages without asking, and without starting what they would start."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], check=False, env=environment)
    with no_services():
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], check=False, env=environment
        )


@contextmanager
def no_services(policy: Path = Path("/usr/sbin/policy-rc.d")) -> Iterator[None]:
    """Packages start no services meanwhile: Prometheus, nginx and a registry would take ports that they were not given.

    Debian's packages ask the program at `policy`; one that a person has put there stays.
    """
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101  # not allowed\n")
    try:
        policy.chmod(0o755)
        yield
    finally:
        policy.unlink(missing_ok=True)


def main() -> int:
    """Install or name what is missing; 1 only in CI."""
    absent = missing()
    if absent and can_install():
        install(sorted({component.package for component in absent}))
        absent = missing()
    for component in absent:
        print(
            f"missing: {component.program} ({component.purpose}); Debian package {component.package}", file=sys.stderr
        )
    return 1 if absent and os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main())
