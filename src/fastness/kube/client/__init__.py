"""The HTTPS adapter: the `Cluster` port on any Kubernetes API server.

client.py               `KubeCluster`: the `Cluster` port over HTTPS
config.py               Find the cluster as kubectl does
connection.py           All that is needed to talk to one API server, read and checked, and a TLS context made of it
http1.py                HTTP/1.1 on one connection: a request out, and its answer read strictly
kubeconfig.py           Kubeconfig files: bytes to checked entries, without touching a disk
pool.py                 The one pool of connections: for the Kubernetes client, the agent and the gate
renewed_certificate.py  The client certificate in files that somebody renews, as that of a node is every half hour
retry.py                What may be sent twice
tokens.py               The bearer token: fixed, or in a file that somebody renews
transport.py            One HTTP client per API server: identity, time-outs, retries, and refusals as `ApiError`
watching.py             Watches that outlive their connections
"""
