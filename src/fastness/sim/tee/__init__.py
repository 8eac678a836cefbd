"""Software TEEs: a silicon vendor that is made up, and machines that carry its chips.

    vendor = SimVendor()
    machine = vendor.chip("snp").boot(default_image())
    evidence = machine.quote(binding)                        # the JSON that agents send, in the real formats
    expected = SnpExpectations(roots=vendor.roots.amd)       # the production verifier, on another root

| module | owns |
| --- | --- |
| `vendor` | SimVendor, SimRoots: roots, chips, collateral, revocation lists |
| `machine` | what a chip and a booted machine can do, whatever their TEE |
| `tpm`, `snp`, `tdx` | the chips, and the evidence of what they booted |
| `images` | BootImage: what a machine boots, and the values that it should measure |
| `tamper` | the faults: what an attacker or a neglectful host would do |

* Formats, signatures and chains are the real ones; only the roots differ. The roots are in no list of pins, so a cluster that is
  not simulated refuses everything that is made here.
* Everything follows from one seed: the same seed gives the same bytes, in whatever order chips are asked for.
* The keys hide nothing. Whoever runs a simulation holds its seed.
"""

from fastness.sim.tee.images import BootImage, changed, default_image
from fastness.sim.tee.machine import BootedMachine, Chip
from fastness.sim.tee.vendor import SimRoots, SimVendor

__all__ = ["BootImage", "BootedMachine", "Chip", "SimRoots", "SimVendor", "changed", "default_image"]
