"""The far side: what runs on a machine, proves what it booted, and makes it what its rendered config says.

    boot/      How a machine becomes a node: enrol, prove, fetch, join; and how it proves itself again
    apply/     What a node does with a config: differences, steps, journal, and what it reports
    disks/     Volumes that only a proven machine opens: made, opened and given a new key
    kata/      The step that makes a node able to run confidential containers
    host/      Adapters to a host: files, units, operating system, power, and what notices a change
    errors.py  Why an agent could not bring its machine where it should be

An agent has no global state: a process may run thousands. It talks to the cluster with the credential of its node and to its
host through `apply/ports.py`. Nothing is imported here: a machine that boots needs half of these, and starts in half the time.
"""
