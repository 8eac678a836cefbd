"""Loops of attestation: what is kept of proofs, and for how long."""
