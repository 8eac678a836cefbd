"""Images of operating systems that are built here: one for each pool that has a MachineOSConfig.

    checks.py          is what a MachineOSConfig names there and good?          before anything is built
    placement.py       image or disk, for every path of a config, and why
    inputs.py          everything that an image is made of, its digest, and the name of the build
    containerfile.py   what people write, and the whole file that is built
    sealing.py         a kernel image whose command line names every byte of the root, and the arguments of kargs.d on it
    life.py            conditions of a build, which one is current, which may go
    plan.py            what a change would do to images: built or not, booted or not
    errors.py          what can go wrong with a build
    live/              the builder (buildah in a sandbox) and transfers from and to registries
    loops/             from MachineOSConfig and pool to builds; what nodes boot then is `machineconfig/rollout/built.py`

A build is hostile code. It sees no network, no credential and nothing of the control plane: what it needs is laid into a
directory before, and what it made is read out of one afterwards, by digest.
"""
