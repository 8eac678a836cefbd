"""Vendors' chains, TPM credentials, Authenticode."""
