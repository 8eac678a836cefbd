"""What the doors share, over the cluster port and without HTTP: keys, secrets, the record.

`pki.py` holds the certificates and the token key of the API, `vault.py` the key that seals secrets at rest, `keyfiles.py` how
private files are read and written, `kms.py` how an operator's command wraps keys, `kubeconfig.py` what is handed to users.
Primitives are in `fastness.crypto`; nothing here decides who may have what, that is `fastness.domain`.
"""
