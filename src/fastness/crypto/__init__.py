"""The one place that imports primitives of cryptography.

    aead.py          Sealing: AES-256-GCM under a ring of keys
    cosignatures.py  Cosignatures of witnesses on checkpoints (C2SP tlog-cosignature, the Ed25519 form)
    csr.py           Requests for certificates (PKCS #10): read strictly, made, and answered
    digests.py       Digests that say how they were made, and comparison that does not leak
    eddsa.py         Ed25519: keys that sign for years, such as those of the record and of served configurations
    entropy.py       Where keys, nonces and serial numbers come from
    errors.py        What can be wrong with keys, certificates, envelopes and tokens
    fips.py          Whether cryptography here runs in FIPS mode, and what that would cover
    image_keys.py    Keys that sign images: ECDSA on P-256 with SHA-256, as cosign makes them
    imported_authority.py  An authority that somebody else made, imported to issue for servers of given names
    issuer_keys.py   Tokens of somebody else's issuer: RS256 and ES256 by the keys that it publishes
    jwe.py           Sealing to a machine's key: JWE in flattened JSON, as guests of the KBS protocol open it
    jwk.py           Public keys as machines name them: JWK of the types that the key broker seals to
    jws.py           Compact JWS with ES256, and nothing else
    keys.py          P-256 private keys
    mac.py           Texts that only we can have written: a payload with a keyed tag (HMAC-SHA-256), under a ring of keys
    merkle.py        The Merkle tree of the record: hashing and proofs of RFC 6962
    notes.py         Signed notes (C2SP signed-note): a text and the Ed25519 signatures under it
    secret.py        Values that do not print themselves
    silicon/         Vendors' chains, TPM credentials, Authenticode
    store_mac.py     The keys that authenticate a store at rest, derived from a vault key
    volume_keys.py   Volume keys in the slots of LUKS2: derived from a disk key, encrypted, spread
    x509.py          Certificates: an authority that issues, and the check of what a peer shows

Everything above speaks in nouns: a `CertificateAuthority` issues, a `KeyRing` seals and opens, a `SigningKey` signs tokens, a
`Digest` carries its algorithm, a `Secret` does not print itself. Rules:

* Algorithms are fixed here and never read from the input: P-256 with SHA-256, AES-256-GCM, ES256.
* Time is an argument (`at`), and so is entropy: a seed replays keys, serial numbers and nonces.
* Whatever a library raises becomes a `CryptoError` (`errors.py`) where it enters.
* Comparison of anything that an attacker may guess is constant-time (`digests.same`).
"""
