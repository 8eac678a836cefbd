"""What follows from an appraisal: concluding, distrusting, overriding, explaining.

approvers.py         Who may agree to an override, and from when: an appointment counts when everybody had time to see it
blast_radius.py      What a Distrust would hit, before anybody writes it
breakglass.py        Break-glass: an override that two named people sign, for one pool, for a few hours at most
conclude.py          From an appraisal to a verdict: policy and values, what stands beside the evidence, what was proved
dispute.py           Evidence in a machine's name that is authentic and still not its own: of another chip, or an earlier boot
distrust.py          Distrust: what is no longer trusted, whatever it proves, and whom that hits
explain.py           Why a machine stands as it does, and what to do about it
init_data.py         What an init-data document that came with evidence says, and whether the processor signed it
machine_standing.py  How a machine stands: the one answer that every surface gives
recovery.py          Recovery of a disk: its key is given to whoever two approvers of break-glass named
retention.py         Which verdicts are kept: the newest of every machine, and every refusal for a month
unlock.py            Unlock sessions, judged: may this session have the keys of a Machine's disks?
"""
