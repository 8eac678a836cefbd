"""Large fleets, as the page's caches hold them."""

from __future__ import annotations

from fastness.kinds.kind import JsonObject
from tests.component.page.served_page import condition


def attested(number: int) -> JsonObject:
    """One machine of many, with names as long as real ones."""
    name = f"machine-{number:020x}"
    return {
        "metadata": {"name": name, "namespace": "fastness-system", "uid": name, "resourceVersion": "1"},
        "spec": {"id": name, "approval": "Approved"},
        "status": {
            "conditions": [condition("Approved", "True"), condition("Attested", "True", "Affirmed", "all is well")],
            "pool": "worker", "nodeName": f"worker-{number:020x}", "keyThumbprint": f"sha256:{number:064x}", "tee": "tdx",
            "properties": {"image": f"registry.example/os@sha256:{number:064x}"}, "lastAttested": "2026-01-01T00:00:00Z",
        },
    }  # fmt: skip
