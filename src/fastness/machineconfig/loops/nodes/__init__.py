"""What is kept about each node, and what it has beside its rendered config.

    api_authority.py   The authority of the API server that nodes have in their kubeconfigs, copied when it is at rest
    config_nodes.py    A MachineConfigNode for every node, which the node itself may report to
    driver_rules.py    Every node is told which program should deploy its operating system
    labels.py          The labels of a node that booted straight into a custom pool
    node_trust.py      Tells nodes which certificates and credentials they should have beside their configs
    pinned_images.py   Pinned images: which sets each node is to have, noted on its Node, and what its pool reports about them
    published_maps.py  ConfigMaps that loops publish: made, and brought to what they should say

Decisions are in `machineconfig/trust` and `machineconfig/rollout`.
"""
