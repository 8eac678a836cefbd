"""Rules about confidential workloads.

features.py       Rules about NodeFeatureRules: what is wrong with one on every node is told to whoever writes it
kata.py           Rules about KataConfig: there is one, not on confidential machines, and it needs its operator
runtime_class.py  Pods and their runtime class: what the class says becomes part of the pod, or the pod is refused
workloads.py      Rules about confidential workloads: what a namespace asks of them, and where they must not be
"""
