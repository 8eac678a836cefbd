"""Who may have what: tokens, proof of possession, authorisation; the key broker, the gate and the config server."""
