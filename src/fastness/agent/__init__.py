"""The far side: what runs on a machine, proves what it booted, and makes it what its rendered config says.

    forwarder.py  before Ignition, in the initial file system: the address that it fetches from
    waiting.py    who is answered there, with what, and how often                                          (pure)
    boot.py       from a ticket to a configuration: enrol, attest, fetch, check
    enrol.py, prove.py, fetch.py, imagetrust.py, attester.py      its steps, its trust, its hardware

    agent.py     the loop: recover, start, follow the desired config
    rendered.py, configs.py      where rendered configs come from: the API; the doors, believed by signatures
    update.py    one update from config to config: check, drain, apply, act, reboot
    desired.py   a rendered config as states of paths and units               (pure)
    steps.py     the steps from one to the other, originals kept              (pure)
    journal.py   what was begun, done, undone: never half applied             (pure)
    kept.py      copies of what an update replaces, by reference, within bounds
    carrier.py   carries out one step on a host, and knows its undo
    apply.py     carries out the steps of a journal, all or none
    setaside.py  where a journal goes that cannot be undone
    validate.py  does the disk say what the config says; the differences      (pure)
    drift.py     notices changes at once
    progress.py  the conditions of a MachineConfigNode                        (pure)
    report.py    tells the cluster: annotations, conditions, events

An agent has no global state: a process may run thousands. It talks to the cluster with the credential of its node and to its
host through `agent.apply.ports`. Nothing is imported here: a machine that boots needs half of these, and starts in half the time.
"""
