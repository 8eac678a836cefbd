"""Verbs about confidential containers.

agent_policy.py   `fastness policy agent`: what the agent inside a confidential pod obeys
dcap.py           `fastness dcap manifests`: Intel's caching and quoting services as manifests
enable.py         `fastness enable`: from bare metal to runtime classes in one step
features.py       `fastness features`: what a machine can do, and what rules make of it, without a cluster
host_check.py     What `fastness doctor` says about confidential containers
initdata.py       `fastness initdata`: build, show, check, measure, compare and apply what the guest of a pod is started with
initdata_file.py  Init data from a file, in whichever form somebody has it
sealing.py        `fastness secret`: sealed secrets for confidential containers, made and checked without a cluster
"""
