"""One config for a pool: which configs it is made of, whether each is valid, what they make together.

inputs.py             What a pool is rendered from: which configs, which operating system, and whether all of it is there
validate.py           Whether one MachineConfig can be rendered: every rule, all problems at once
merge.py              Many configs into one spec: each Ignition document in one language, then everything merged in order
render.py             One config for a pool: validated, merged, named
reconcile.py          What a running machine cannot follow: changes that only a new machine could have
base/                 What every machine starts from: the files and units that make a machine a node
generated.py          MachineConfigs that the control plane makes: from KubeletConfigs and the like
cluster_configs.py    Configs that follow from the cluster's own settings: nodes.config and the FeatureGate
cluster_status.py     What became of the cluster's own settings, as their conditions and events tell it
outcome.py            What became of a KubeletConfig or a ContainerRuntimeConfig, as its conditions tell it
proposed_settings.py  What follows from other settings of the cluster, before anybody applies them
settings/             What settings of kubelets mean, before they are files: profiles, gates, choices
kubelet.py            KubeletConfig: settings of the kubelet, turned into files of a machine
container_runtime.py  ContainerRuntimeConfig: settings of the container runtime, turned into drop-ins
blame.py              Where every part of a rendered config came from, and what it overrode
explain.py            Why a machine has a file or a unit: the row of the base that wrote it, and who said something else later
suggest.py            The way out for a confidential pool: what a config asked for, as a layer of the image
disks.py              Which encryption of disks is none, or opens without a proof: what `storage.luks` must not ask for
errors.py             What can be wrong with an input: exceptions, and problems of a MachineConfig as data
registries/           Registries: where machines may pull images from, and whose signatures they ask for
kargs.py              Kernel arguments: how an entry splits into arguments, and how one set replaces another
prune.py              Which rendered configs may be forgotten
"""
