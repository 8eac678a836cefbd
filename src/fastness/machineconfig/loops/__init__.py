"""From MachineConfigs to nodes that run them.

    announcements.py       Remarks about objects, told once: an event when a remark is new, none while it stays the same
    api_authority.py       The authority of the API server that nodes have in their kubeconfigs, copied when it is at rest
    bare_metal.py          Machines of Metal3: each takes a BareMetalHost, follows it until it is a node, and gives it back
    boot_image_stream.py   The boot images of the release, as the ConfigMap of the cluster has them
    boot_images.py         Boot images: machine sets are kept at the images of the release, and moved to managed user-data
    bootstrap_configs.py   FastnessConfigs of Cluster API: each becomes a Secret with the pointer of its pool
    cluster_kinds.py       Configs that follow from the cluster's own settings: nodes.config and the FeatureGate, for every pool
    control_plane_sets.py  The ControlPlaneMachineSet: one Machine of the control plane is replaced at a time
    controllers.py         All loops of machine configuration, ready to run
    defaults.py            What a cluster has if nobody made it: built-in pools, settings of disruption
    drain.py               Drains: nodes ask by annotation, this loop cordons and empties them, and puts them back to work
    generated.py           Configs that follow from other objects: the base of each role, KubeletConfigs, ContainerRuntimeConfigs
    holds.py               What holds a node back: an image that nobody could prove, a machine that is not proved
    installer_pointers.py  Pointers that an installer made (`<role>-user-data`): left alone, but for those that are ours
    keep.py                Generated configs are what they should be: made, put back when edited, made anew by another version
    labels.py              The labels of a node that booted straight into a custom pool
    machine_api.py         The loops that make machines for machine sets, as a family
    machine_ends.py        How a Machine goes, whoever made it: hooks, an empty node, and the finalizer last
    machine_sets.py        MachineSets: as many Machines as each asks for, made a few at a time and taken away in its order
    node_sources.py        Where facts about the cluster are read: Services, Secrets, ConfigMaps, OpenShift's own objects
    node_trust.py          Tells nodes which certificates and credentials they should have beside their configs
    nodes.py               A MachineConfigNode for every node, which the node itself may report to
    other_machine_api.py   Whether another machine-api operator works in this cluster
    other_operators.py     Whether another machine-config operator works in this cluster
    overlay_targets.py     Which overlays every node goes to, kept event by event
    overlays.py            NodeOverlays: whether each can be merged, how many machines get it, and whether those have it
    pinned_images.py       Pinned images: which sets each node is to have, noted on its Node, and what its pool reports about them
    policies.py            The status of RolloutPolicies, kept by the rollout as it goes from pool to pool
    pool_members.py        Which node is in which pool, and how many are in which state, kept event by event
    pool_ticket.py         The join tickets in the user-data of pools: minted, rotated, forgotten
    prune.py               Rendered configs that nobody uses any more are deleted, all but the last five of each pool
    published_maps.py      ConfigMaps that loops publish: made, and brought to what they should say
    registries.py          Registries: a config for each pool with the built-in label, from all that is said about registries
    registry_access.py     How loops ask registries: by the mirrors of the cluster, with its pull secret, trusting whom it trusts
    registry_view.py       What is said about registries, as loops see it: asked of the cluster, or out of informers
    render.py              Rendering: one config for each pool, stored before the pool points to it
    rollout.py             The rollout of a pool: who goes next, and what the pool reports
    streams.py             The OSImageStream `cluster`: made before any render, filled from images that the cluster names
    timing.py              How long these loops wait: the constants of the field, and faster ones for simulated clusters
    user_data.py           Managed user-data: what a new machine of a pool is created with

All decisions are in the other packages of the room; times are in `timing`, because a simulation runs the same loops faster.
"""
