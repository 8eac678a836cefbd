"""Simulation: virtual machines that run the real agent, and everything that can go wrong with them.

    simulation.py      The simulation: virtual machines and what was done to them, as the page and the command line see it
    fleet.py           Virtual machines that run: they come and go until all of them are switched off
    machines.py        Virtual machines: directories that boot, join the cluster and run the real agent
    platform.py        The platform under virtual machines: what they share, what an installed disk has, the user-data of a pool
    inventory.py       Which virtual machines there are and what was done to them
    hardware.py        The hardware of a virtual machine: what is switched on, and how it then speaks for what it booted
    first_boot.py      The first boot of a virtual machine: what Ignition and the first-boot service of a real one do, in process
    bootstrap.py       How a virtual machine of a pool without attestation joins: what a kubelet does with its kubeconfig
    disks/             Encrypted volumes of virtual machines: files in their state that only a released key opens
    faults/            What can go wrong in a simulated cluster, and be put right again
    tee/               Software TEEs: a silicon vendor that is made up, and machines that carry its chips
    swtpm.py           Virtual machines with a real TPM in software
    registry.py        The registry of a simulated cluster: which images exist, and what machines that boot them measure
    vms/               Real machines beside the virtual ones: QEMU, OVMF and a software TPM
    network.py         The network cable of a virtual machine, which can be pulled
    clock.py           The clock of a simulated cluster: the system's, with leaps
    announce.py        Telling the doors of a simulated cluster about its vendor
    control_socket.py  A Unix socket in the state directory, through which `fastness sim` asks for things
    control_client.py  Asking a running simulation: the other end of the control socket
    daemons.py         The pods of the runtime's DaemonSets on virtual hosts of confidential containers
    discovery.py       Feature discovery on virtual hosts of confidential containers
    errors.py          What cannot be done to virtual machines: errors of the API whose hints are about the simulator
    kubelet.py         The parts of a cluster that virtual machines do not bring along
    provider.py        The provider of virtual machines: one for each Machine object that asks for one
    first_set.py       The machine set that `fastness up` begins with
    pool_demand.py     How many machines a pool wants, said on the pool where no machine set says it

Used by tests and by the verbs that start a whole cluster on a laptop; nothing else imports it. What is simulated says so: nodes
carry the annotation `fastness.dev/simulated`, verdicts and answers the word.
"""
