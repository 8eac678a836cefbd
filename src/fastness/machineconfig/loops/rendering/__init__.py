"""From everything that is said about a pool to one rendered config.

    cluster_kinds.py    Configs that follow from the cluster's own settings: nodes.config and the FeatureGate, for every pool
    defaults.py         What a cluster has if nobody made it: built-in pools, settings of disruption
    generated.py        Configs that follow from other objects: the base of each role, KubeletConfigs, ContainerRuntimeConfigs
    image_contents.py   Images of operating systems, read for attestation as nodes would pull them
    keep.py             Generated configs are what they should be: made, put back when edited, made anew by another version
    node_sources.py     Where facts about the cluster are read: Services, Secrets, ConfigMaps, OpenShift's own objects
    prune.py            Rendered configs that nobody uses any more are deleted, all but the last five of each pool
    registries.py       Registries: a config for each pool with the built-in label, from all that is said about registries
    registry_access.py  How loops ask registries: by the mirrors of the cluster, with its pull secret, trusting whom it trusts
    registry_view.py    What is said about registries, as loops see it: asked of the cluster, or out of informers
    render.py           Rendering: one config for each pool, stored before the pool points to it
    streams.py          The OSImageStream `cluster`: made before any render, filled from images that the cluster names

Decisions are in `machineconfig/render` and `machineconfig/streams`.
"""
