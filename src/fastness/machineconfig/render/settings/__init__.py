"""What settings of kubelets mean, before they are files: profiles, gates, choices, and how they come together.

choices.py  What a pool chooses by annotation: its container runtime, and whose kubelet its nodes run
cluster.py  What the whole cluster asks of its kubelets: nodes.config, FeatureGate and APIServer
gates.py    The feature gates that a kubelet knows and that may be set to either value
merge.py    A user's settings of the kubelet over the cluster's: what wins, what belongs together, what goes elsewhere
tls.py      TLS of the kubelet's listener: a profile, as the two or three settings that a kubelet reads
"""
