"""Rules about the objects that trust rests on, and what a change of them lowers.

acts.py             Acts of people that belong on the record: what a write is, who does it, and why
confidential.py     Rules about the ConfidentialCluster and the broker: nothing is weakened by accident
disk_keys.py        Names that keys of disks have, and Machines that have such keys
lowering.py         What makes a ConfidentialCluster weaker: one partial order, as a table with a row for each field
policies.py         A text that judges in place of the built-in policy lowers protection, and is confirmed as such
strength.py         How two values of a field compare, whatever the field: times, bounds, lists of people
topology.py         Which control planes confidential pools can stand on: not a hosted one, and not a single node
trusted_objects.py  Objects that trust rests on: who writes the status of a Machine, and how such objects end
"""
