"""The silicon vendors' roots, pinned by the SHA-256 of the certificate.

Certificates come from the evidence, from a directory or from the vendor's service, and none of these is trusted: a chain counts
only when it ends in a certificate with one of these fingerprints. Changing a line here changes whom every cluster believes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# ARK certificates of AMD's key distribution service, one per generation.
AMD_ROOTS: Final[Mapping[str, str]] = {
    "Milan": "69d063b45344d26a2e94e1f4210de49ef555308287d4c174445c95639a540bcd",
    "Genoa": "4c6598d19c18719c5dfd4a7d335f674e5bfe1d8f800cea2cf270c10d103db2f1",
    "Turin": "1f084161a44bb6d93778a904877d4819cafa5d05ef4193b2ded9dd9c73dd3f6a",
}

# Intel SGX Root CA: signs PCK certificates, TCB information and enclave identities, for SGX and TDX alike.
INTEL_ROOT: Final = "44a0196b2b99f889b8e149e95b807a350e7424964399e885a7cbb8ccfab674d3"
