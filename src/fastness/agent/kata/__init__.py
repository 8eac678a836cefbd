"""The step that makes a node able to run confidential containers.

features.py  Telling the cluster what this machine can do
pod.py       The pod of the runtime's DaemonSets: one step whenever something about its node changed
step.py      Installing the runtime for confidential containers from a pod on the node, where no machine configs are
"""
