"""Simulation: virtual machines that run the real agent, and everything that can go wrong with them.

    simulation.py   all machines of a state directory, as the page and `fastness sim` see them
    hall.py         where machines stand and run; machines.py: the life of one; roster.py: what a restart goes on with
    hardware.py     boards with simulated chips (`tee/`), or with a TPM that is a process (swtpm.py)
    faults/         what can be done to them, and undone
    cable.py, clock.py, announce.py     the network, the time and the vendor that faults act on
    hatch.py, asking.py                 the two ends of STATE/sim.sock

Used by tests and by the verbs that start a whole cluster on a laptop; nothing else imports it. What is simulated says so: nodes
carry the annotation `fastness.dev/simulated`, verdicts and answers the word.
"""
