"""Policies on claims: which judge, what they see, what they concluded.

cases.py         Trying a policy: is it one, and does it do what its author says it does
claims.py        What a policy gets to see, and what it answers: claims in, an AR4SI trust vector out
policy.py        Policies: Rego on claims and reference values, for evidence and for resources
policy_set.py    Which policies judge: the built-in one, and the active text of every AppraisalPolicy beside it
query.py         Questions to the policies of users, as data: who decides asks, and somebody else finds the answer
reading.py       What a policy reads, found out from its text, so that it is handed nothing else
tasks.py         What a process for policies does with policies of evidence and of resources
"""
