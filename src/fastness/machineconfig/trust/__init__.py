"""What a node has beside its rendered config: certificates and credentials that change without a rollout.

    bundles.py     Bundles of certificates: read one by one, so that a bad one is told by its place
    sources.py     Where whom-to-believe comes from: ConfigMaps and Secrets, each with its field and what is wrong with it
    node_trust.py  From the ControllerConfig to the one document that nodes get
    image_pull.py  The credential with which proven nodes of a pool pull the image that was built for it
    files.py       From that document to files of a machine: paths, modes, what is left of what was there before
    plan.py        What a ConfigMap that trust is read from would do to machines, before it is applied
    kubeconfig.py  The authority inside of a kubeconfig, and whether the kubelet must start anew for it

How the document reaches a machine is `release`; who writes the files is `agent/apply/trust_writer.py`.
"""
