"""Names of CertificateSigningRequests: one segment of a path, because kubelets name theirs by a digest in base64url."""

from __future__ import annotations

import pytest

from fastness.crypto.keys import PrivateKey
from fastness.kinds.registry import find
from fastness.kube.errors import Invalid
from fastness.runtime.clock import SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.joining import serving_request

CSR = find("certificates.k8s.io", "v1", "certificatesigningrequests").resource


async def test_a_request_may_have_the_name_that_a_kubelet_gives_it(embedded_server: Embedded) -> None:
    request = serving_request(PrivateKey.generate(SystemEntropy()), "worker-1", ["10.0.0.1"])
    name = "node-csr-GeK9ISiOZT5xFViPHcwGFLq-QvK_rBV5B0fxYe8Bwf0"
    made = await embedded_server.cluster.create(CSR, {**request, "metadata": {"name": name}})
    assert made["metadata"]["name"] == name


@pytest.mark.parametrize("name", ["node/csr", "..", "node%20csr"])
async def test_a_name_that_is_no_segment_of_a_path_is_refused(embedded_server: Embedded, name: str) -> None:
    request = serving_request(PrivateKey.generate(SystemEntropy()), "worker-1", ["10.0.0.1"])
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await embedded_server.cluster.create(CSR, {**request, "metadata": {"name": name}})
