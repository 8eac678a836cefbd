"""Adapters to a host: files, units, operating system, power, and what notices a change.

    boot_entries.py       Kernel images on the EFI system partition, and which of them systemd-boot takes: always, once, this time
    boot_loader.py        The boot loader of a host, brought up to date from an image that was staged
    bootc.py              The operating system of a host that `bootc` deploys
    composefs.py          The operating system of a sealed host: images side by side, booted once, kept when proved
    containerd_images.py  Images of containerd, through its own program `ctr`, in the namespace where Kubernetes looks
    crio_images.py        Images of CRI-O: `crictl` asks and pulls as the kubelet does, and a drop-in names what is pinned
    devices.py            Feature discovery, the part about things of which a machine has several
    driver_tasks.py       Which driver of an operating system does which task, and what it leaves to the image
    engine.py             What drivers of image-based hosts share: patience with registries, credentials, logs of the last boot
    errors.py             What a host cannot or will not do
    features.py           Feature discovery: what a machine can do, read from its files
    file_changes.py       Changes of files: as the kernel tells them (inotify), or by looking again and again
    files.py              The files of one machine below a root directory, which nothing can leave
    host_tree.py          What feature discovery reads: the files of a machine, behind the smallest possible port
    image_host.py         Which program deploys the operating system of this machine, by what the machine is
    image/                Images of disks, looked into and filled
    key_file.py           A key of this machine in a file: made once, whole or not at all, and never replaced
    memory_images.py      Images in memory: the container runtime of a virtual machine, with a registry that has every image
    memory_os.py          An operating system in memory: what is booted, what is staged, which arguments the kernel has
    os_steps.py           From what a machine boots to what it should boot: which steps, in which order
    ostree.py             An operating system deployed by `ostree` into a sysroot: the machine's own, or a directory
    own_process.py        What an agent sees to for its own process: the only one, never dumped, ready
    power.py              Reboots: of this machine, and of a virtual one
    process.py            Programs of the host: run one, bounded in time, and say plainly what it answered
    rooted.py             The way to a path below a root directory, one component at a time, with directory descriptors
    rpm_ostree_os.py      The operating system of a host that `rpm-ostree` deploys: an image, packages and a kernel on top
    rpm_ostree.py         Packages on a host that is an image: layered on top of it by `rpm-ostree`
    sparse.py             Copies the content of files of any size in little memory, holes as holes
    states.py             What can be at a path, and what an image-based host boots
    systemd.py            Units through the real `systemctl`, on this machine or offline on a root directory
    tee/                  The hardware that vouches for a machine, and the directory with its identity
    unit_links.py         Units of a root directory without systemd: the links that `systemctl --root` would make, made by us
    user_data/            Where platforms put user-data, and how the agent reads it there: bytes, and nothing is believed of them

Each module adapts one part of a machine; the port that it fits stands beside its consumer (`agent/apply/ports.py`). For each
port there is one that works on a real host and one that works without it (a directory, memory), and both pass the same contract
tests, so that a virtual machine runs the very agent that a real one runs.
"""
