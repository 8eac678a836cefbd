"""Verbs about confidential containers.

agent_policy.py     `fastness policy agent`: what the agent inside a confidential pod obeys
dcap.py             `fastness dcap manifests`: Intel's caching and quoting services as manifests
enable.py           `fastness enable`: from bare metal to runtime classes in one step
features.py         `fastness features`: what a machine can do, and what rules make of it, without a cluster
initdata.py         `fastness initdata`: build, show, check, compare and apply what the guest of a pod is started with
initdata_digest.py  `fastness initdata digest`: what evidence shows for init data, and as reference values in a cluster
initdata_file.py    Init data from a file, in whichever form somebody has it
sealing.py          `fastness secret`: sealed secrets for confidential containers, made and checked without a cluster
"""
