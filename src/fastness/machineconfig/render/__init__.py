"""One config for a pool: which configs it is made of, whether each is valid, what they make together.

inputs.py             What a pool is rendered from: which configs, which operating system, and whether all of it is there
validate.py           Whether one MachineConfig can be rendered: every rule, all problems at once
merge.py              Many configs into one spec: each Ignition document in one language, then everything merged in order
render.py             One config for a pool: validated, merged, named
reconcile.py          What a running machine cannot follow: changes that only a new machine could have
generated.py          MachineConfigs that the control plane makes: from KubeletConfigs and the like
kubelet.py            KubeletConfig: settings of the kubelet, turned into files of a machine
container_runtime.py  ContainerRuntimeConfig: settings of the container runtime, turned into drop-ins
blame.py              Where every part of a rendered config came from, and what it overrode
suggest.py            The way out for a confidential pool: what a config asked for, as a layer of the image
disks.py              Which encryption of disks is none: what `storage.luks` of a confidential pool must not ask for
errors.py             What can be wrong with an input: exceptions, and problems of a MachineConfig as data
kargs.py              Kernel arguments: how an entry splits into arguments, and how one set replaces another
prune.py              Which rendered configs may be forgotten
"""
