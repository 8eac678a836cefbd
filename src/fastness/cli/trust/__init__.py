"""Verbs about who is believed, and why.

attest.py             `fastness attest`: judge evidence from files, without a cluster; explain what a cluster decided
attest_view.py        An appraisal for people: the answer first, then each check
audit.py              `fastness audit`: read the record of what was decided, and prove it to somebody who trusts none of us
audit_verify.py       What `fastness audit verify` says about an export or a proof: one line of result, or what is wrong
breakglass.py         `fastness break-glass`: override attestation for one pool, for a few hours, if two approvers agree
disk_recovery.py      `fastness machine disk recover`: the key of a disk for people, if two approvers agree
disputes.py           `fastness machine approve-chip|settle`: decisions about evidence that is not a machine's own
distrust.py           `fastness distrust`: stop trusting a machine, an image, a key, a chip or a generation of them
enrolled_machines.py  The Machines of a cluster: find one by name, write a decision on it, say how each stands
explain.py            `fastness attest explain`: the verdict about a machine in plain words, with the commands that change it
machine.py            `fastness machine`: the machines that enrolled, and what an administrator decides about them
machine_disks.py      `fastness machine disk list|rekey|accept` and `fastness machine delete`: encrypted disks, and their end
offline_user_data.py  `fastness userdata --offline`: pointers for the first machines of a cluster that does not exist yet
policies.py           `fastness policy test`: what a policy does, before a cluster is asked to believe it
record_check.py       A second, small verifier of the record: no cluster, no tiles library, no tree of ours
resources.py          `fastness resource` and `fastness broker`: administration of the key broker
tickets.py            `fastness ticket create` and `fastness userdata`: how a machine that is made by hand may ask to join
vouching.py           `fastness machine vouch`: a person says that statuses are right which nobody of the control plane signed
"""
