"""What a node does with a config: differences, steps, journal, and what it reports.

    node.py          The loop of one node: recover, follow the desired config, report
    cluster.py       What the agent reads from the cluster: its own Node, watched and asked, and rendered configs
    disk.py          What the machine itself remembers: its current config, its overlays, how it was first booted
    first_boot.py    The first boot, before the kubelet: the operating system becomes the one that the configuration asks for
    update.py        One update, from config to config: check, drain, apply, act
    desired.py       A rendered config as what a machine should be: states of paths, units, keys, password, deployment
    steps.py         The steps from one config to another, so that each can be undone
    matching.py      Whether a path is as it should be: by what stands there, or by what the booted image has below /usr
    image_defaults.py  What lies in /etc over the same default of the image goes, so that programs read the image's
    journal.py       The apply journal, without I/O: what was begun, and what a restart has to do about it
    copies.py        Copies of what an update replaces, and where they go with a journal that cannot be undone
    apply.py         Carries out steps on a host and undoes them, with the journal ahead of every one
    into_root.py     A config written into a directory that is no machine yet: the root of an image that is being built
    boots.py         What of an update happens across a boot: did the machine come up with the system that it was to have
    built_image.py   The image that was built for a pool, over the config that a machine was given
    disk_check.py    Whether the disk of a node says what its config says, and what follows if it does not
    earlier_configs.py  The configs that this machine had: going back to one is never refused for what drifted
    failed_boot.py   A system that the machine did not come up with: remembered, so that nobody reboots into it for ever
    others.py        Files of other operators outlive a boot whose /etc is another one
    moved_state.py   The agent's own files move below /var/lib/fastness, where an encrypted volume can be under them
    node_trust.py    Keeps what a machine has beside its config as the control plane says, whatever else the machine does
    trial.py         A system that was booted once: kept when the machine has proved itself with it, left when it cannot
    trust_writer.py  Writes what a machine has beside its config: certificates and credentials that change without a rollout
    validate.py      Does the disk say what the config says? Every difference, each with a text for people
    drift.py         Notices at once when a managed file changes
    progress.py      The conditions of a MachineConfigNode: parents, children, and what one says about the others
    report.py        What the agent tells the cluster: annotations of its Node, conditions of its MachineConfigNode, events
    accounts.py      Users and groups of a machine, read from the text of its own account files
    handlers.py      Whether the container runtime knows the handlers of confidential containers, and they can start
    hosts.py         Hosts put together from drivers: this machine, or a directory that stands for one
    ruled_os.py      The operating system of a machine that two programs could deploy: the cluster has a rule which one does
    ports.py         What the agent needs of a host, as small as it can be
    pins/            Pinned images: pulled ahead of time, verified, and kept by the container runtime

`desired`, `steps`, `journal`, `validate` and `progress` are pure: what a crash leaves behind is decided without a disk.
"""
