"""Verbs that run a cluster, or something of it.

crds.py             `fastness crds`: the definitions that a Kubernetes cluster needs before Fastness can use it
demo.py             `fastness demo`: the story of a confidential cluster in two minutes
embedded_plane.py   What `fastness up` does once its options are read
kept_cluster.py     `fastness backup` and `restore` for a Kubernetes
keys.py             `fastness keys`: the keys of a cluster, and new ones for all of them in an emergency
people_options.py   The identity provider that people log in at, as options of `up` and `serve`
replica_process.py  What `fastness serve` does once its options are read
serve.py            `fastness serve`: roles of the control plane against a Kubernetes API server
shared_vault.py     `fastness vault rotate` on a Kubernetes: its brokers are asked, and watched while they turn the key they share
sim.py              `fastness sim`: what virtual machines there are, and what can be done to them while `fastness up` runs
state.py            `fastness backup`, `restore` and `state migrate`: the store of a state directory, as a whole
state_directory.py  The state directory of a control plane: the option that names it, and `fastness kubeconfig`
state_objects.py    `fastness state list` and `remove`: objects of a state directory that nobody can read
story.py            What `fastness demo` does once its options are read: a plane that runs while its story is told
up.py               `fastness up`: a whole control plane on this machine, in the foreground
vault.py            `fastness vault`: the key that seals what is secret at rest
witness.py          `fastness witness`: watch over the record of a cluster that somebody else runs
"""
