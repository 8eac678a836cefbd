"""The one place that imports primitives of cryptography.

Everything above speaks in nouns: a `CertificateAuthority` issues, a `KeyRing` seals and opens, a `SigningKey` signs tokens, a
`Digest` carries its algorithm, a `Secret` does not print itself. Rules:

* Algorithms are fixed here and never read from the input: P-256 with SHA-256, AES-256-GCM, ES256.
* Time is an argument (`at`), and so is entropy: a seed replays keys, serial numbers and nonces.
* Whatever a library raises becomes a `CryptoError` (`errors.py`) where it enters.
* Comparison of anything that an attacker may guess is constant-time (`digests.same`).
"""
