"""Rules about confidential workloads."""
