"""One config for a pool: which configs it is made of, whether each is valid, what they make together.

select.py             Which configs a pool is made of, and in which order they are merged
readiness.py          Whether everything that a pool is rendered from is there
streams.py            Which operating system a pool runs when no config names an image: its stream
validate.py           Whether one MachineConfig can be rendered: every rule, all problems at once
merge.py              Many configs into one spec
documents.py          The Ignition document of a config, in the version that everything here works on
render.py             One config for a pool: validated, merged, named
generated.py          MachineConfigs that the control plane makes: from KubeletConfigs and the like
kubelet.py            KubeletConfig: settings of the kubelet, turned into files of a machine
container_runtime.py  ContainerRuntimeConfig: settings of the container runtime, turned into drop-ins
blame.py              Where every part of a rendered config came from, and what it overrode
problem.py            What is wrong with a MachineConfig, as data: all of it at once, each with the way out
suggest.py            The way out for a confidential pool: what a config asked for, as a layer of the image
disks.py              Which encryption of disks is none: what `storage.luks` of a confidential pool must not ask for
errors.py             What can be wrong with an input that is not a MachineConfig
kargs.py              Kernel arguments: how an entry splits into arguments, and how one set replaces another
prune.py              Which rendered configs may be forgotten
registries.py         Whether a change of registries.conf can be taken without moving pods away
"""
