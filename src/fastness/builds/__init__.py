"""Images of operating systems that are built here: one for each pool that has a MachineOSConfig.

    checks.py          is what a MachineOSConfig names there and good?          before anything is built
    placement.py       image or disk, for every path of a config, and why
    defaults.py        what base configs bring, below /usr in an image: a MachineConfig in /etc wins over it
    inputs.py          everything that an image is made of, its digest, and the name of the build
    packages.py        extensions and kernel types, by the base's own package manager (packages.sh runs in the build)
    kernel_arguments.py  arguments as files of the image
    credentials.py     a credential of a registry in what goes into an image
    containerfile.py   what people write, and the whole file that is built
    sealing.py         a kernel image whose command line names every byte of the root, and the arguments of kargs.d on it
    sbom.py            what is in an image, as a bill of materials that scanners read
    signing.py         a signature beside an image, as cosign writes it
    life.py            conditions of a build, which one is current, which may go
    default_config.py  the MachineOSConfig that the cluster writes for a pool that nobody described an image for
    leaving.py         whether nodes come back to their stock image when a MachineOSConfig goes
    admission/         rules about MachineOSConfigs and about image mode of the cluster
    plan.py            what a change would do to images: built or not, booted or not
    log.py             the log of a build: bounded, with its progress, without credentials
    build_objects.py   names and labels of what a build makes in the cluster
    job.py             the Job of a build: its manifests, and how it stands
    errors.py          what can go wrong with a build
    live/              builders (buildah in a sandbox, here or in a Job) and transfers from and to registries
    loops/             from MachineOSConfig and pool to builds; what nodes boot then is `machineconfig/rollout/built.py`

A build is hostile code. It sees no network, no credential and nothing of the control plane: what it needs is laid into a
directory before, and what it made is read out of one afterwards, by digest.
"""
