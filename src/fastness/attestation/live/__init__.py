"""The verifier of a cluster, with its caches and documents.

appraisers.py         Evidence of each kind: read, completed, judged under every set of roots that may vouch for it
attempt.py            What a door asks of whoever judges evidence for it: an attempt goes in, a judgement comes out
caches.py             What a verifier compares with, kept ready: Distrusts, reference values, policies, demands, chips
collateral.py         Vendors' documents at hand: Intel's, AMD's, and those of makers of TPMs
collateral_files.py   Vendors' documents as files: what an operator imports, and what was fetched before
collateral_report.py  A door tells the cluster what documents of vendors it has
guard_state.py        How strict the cluster was when the controllers last put that on the record
image_contents.py     What loops ask of whoever reaches registries: the files of an image, the signatures beside it
launches.py           Launches of SNP guests: a disk key is released in the first session ever seen of a launch
lowerings.py          Who confirmed a lowering, as the record has it
machines.py           Machines in the cluster: found by the key that is their identity, written once by enrolment
named_record.py       Acts of people on the record: written at the edge, and named in what came of them
policy_workers.py     Processes that run policies of users: started when needed, bounded, replaced when one goes too far
simulated_vendor.py   The simulated vendor of a simulated cluster, as it is announced to every door
statuses.py           The statuses of Machines, signed as they are written and checked as they are read
successor_guard.py    Whether every approved image knows the next authority of the doors
unlocking.py          Unlock sessions at the verifier: a Machine is named, its evidence judged, its standing left alone
vendor_services.py    The vendors' own services: Intel's provisioning certification, AMD's key distribution
verifier.py           The verifier of a cluster: evidence in, verdict out
writer.py             Keeping what was found: the Verdict, the evidence it rests on, the Machine's status
"""
