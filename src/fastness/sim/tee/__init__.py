"""Software TEEs: a silicon vendor that is made up, and machines that carry its chips.

    attester.py  A simulated machine behind the port that agents know: enrolment and the handshake cannot tell it from a real one
    firmware.py  The firmware of simulated platforms: which versions are current, and which were once
    images.py    What a machine boots, and the values that it should measure
    machine.py   What every chip and every booted machine can do, whatever their TEE
    snp.py       Simulated AMD: roots per generation, chips with versioned keys, and reports of versions 2, 3 and 5
    tamper.py    The faults: what an attacker, a careless host or a cable would do to machines and their evidence
    tdx.py       Simulated Intel: a root, platforms, a quoting enclave, and the collateral about them
    tpm.py       Simulated TPMs: endorsement key, attestation key, registers, quotes
    vendor.py    A silicon vendor that is made up: the roots of its three works, and the chips that come out of them
    writers/     The bytes that software TEEs write

How it is used:

    vendor = SimVendor()
    machine = vendor.chip("snp").boot(default_image())
    evidence = machine.quote(binding)                        # the JSON that agents send, in the real formats
    expected = SnpExpectations(roots=vendor.roots.amd)       # the production verifier, on another root

* Formats, signatures and chains are the real ones; only the roots differ. The roots are in no list of pins, so a cluster that is
  not simulated refuses everything that is made here.
* Everything follows from one seed: the same seed gives the same bytes, in whatever order chips are asked for.
* The keys hide nothing. Whoever runs a simulation holds its seed.
"""

from fastness.sim.tee.images import BootImage, changed, default_image
from fastness.sim.tee.machine import BootedMachine, Chip
from fastness.sim.tee.vendor import SimRoots, SimVendor

__all__ = ["BootImage", "BootedMachine", "Chip", "SimRoots", "SimVendor", "changed", "default_image"]
