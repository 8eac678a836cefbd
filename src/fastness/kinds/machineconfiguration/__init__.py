"""`machineconfiguration.openshift.io/v1`: what a machine should look like, and how far it got.

    config.py             MachineConfig: a piece of what machines of a pool should be
    controller_config.py  ControllerConfig: facts about the cluster that go into every rendered config
    kubelet_config.py     KubeletConfig and ContainerRuntimeConfig: the two settings that generate MachineConfigs
    names.py              Every name that machine configuration agrees on: annotations, labels, conditions, states, events, files
    node.py               MachineConfigNode: how far one node is with its configuration
    os_build.py           MachineOSBuild: one build of a pool's operating system image
    os_config.py          MachineOSConfig: the operating system image that is built for a pool
    pinned_images.py      PinnedImageSet and OSImageStream: images that are chosen ahead of time
    pool.py               MachineConfigPool: machines that get the same rendered config, and how the rollout stands
    references.py         How images and objects are named in this group

All kinds are cluster scoped and carry the label that marks definitions an operator manages. Names, columns and limits are
those of the public API, so that manifests and habits carry over.
"""

GROUP = "machineconfiguration.openshift.io"
VERSION = "v1"
LABELS = {"openshift.io/operator-managed": ""}
