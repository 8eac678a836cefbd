"""Policies on claims: which judge, what they see, what they concluded.

cases.py            Trying a policy: is it one, and does it do what its author says it does
claims.py           What a policy gets to see, and what it answers: claims in, an AR4SI trust vector out
policy.py           Policies for evidence: Rego on claims and reference values, and which of them judge
query.py            Questions to the policies of users, as data: who decides asks, and somebody else finds the answer
reading.py          What a policy reads, found out from its text, so that it is handed nothing else
resource_policy.py  Policies for resources: Rego on the claims of a token, and whether all of them allow
tasks.py            What a process for policies does with policies of evidence and of resources
"""
