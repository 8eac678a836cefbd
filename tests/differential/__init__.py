"""One conversation with two servers: the embedded API and a real kube-apiserver must give the same answers.

The script is data (`script/`, one small file per family of requests). `conversation` speaks it with one server and keeps every
answer; `normal` takes out what cannot be equal (identities, versions, times, sentences); `compare` names every difference that
is left. A difference is a failure unless `allowed` lists it with a reason, and an entry of `allowed` that no longer occurs is a
failure as well, so the list is always the truth about how far the embedded API differs from Kubernetes.

Rules: both servers see the same names, so orders are equal; users are impersonated by the administrator on both sides, so
credentials are equal; controllers run on both sides, so namespaces end and garbage is collected.
"""
