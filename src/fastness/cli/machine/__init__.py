"""Verbs that run on a machine.

agent.py            `fastness agent`: the part of Fastness that runs on a machine
agent_apply.py      `fastness agent apply`: a config becomes files of an image, by the code that writes them on a machine
agent_attest.py     `fastness agent attest` and `join`: a machine that goes on proving what it booted
agent_attester.py   What speaks for the hardware of a machine, with an identity that is the machine's own
agent_boot.py       `fastness agent boot` and `keep-identity`: the first boot of a machine
agent_features.py   `fastness agent features`: find out what this machine can do, and tell the cluster
agent_firstboot.py  `fastness agent firstboot`: the operating system becomes the one that the configuration asks for
agent_hardware.py   The hardware that vouches for a machine, and the options that name it
agent_kata.py       `fastness agent kata`: what the pods of the runtime's DaemonSets run on a node
agent_node.py       How `fastness agent run` gets configs for a node that never attests
agent_run.py        `fastness agent run`: bring this machine where its node's desired config says, and keep it there
agent_unlock.py     `fastness agent unlock` and `leave-initrd`: encrypted volumes, in the initial file system
"""
