"""Rules about the objects that trust rests on, and what a change of them lowers.

acts.py          Acts of people that belong on the record: what a write is, who does it, and why
confidential.py  Rules about the ConfidentialCluster and the broker: nothing is weakened by accident
endings.py       How objects that trust rests on end: through their own path, and never by way of somebody else's end
lowering.py      What makes a ConfidentialCluster weaker: one partial order, as a table with a row for each field
machines.py      The status of a Machine is what the doors and loops found out, and nobody else's word
policies.py      A text that judges in place of the built-in policy lowers protection, and is confirmed as such
strength.py      How two values of a field compare, whatever the field: times, bounds, lists of people
"""
