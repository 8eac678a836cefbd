"""A layout to a registry, as the OCI distribution specification has it.

    push("http://127.0.0.1:5000", layout, "fastness/fastness")

Every image of the layout goes there under its tag, a signature under the tag that cosign looks for. Blobs that the registry has
are not sent again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import httpx

from tools.release.layout import REF, blob_path, document, entries, read_blob

PUSH_SECONDS: Final = 180.0


def push(registry: str, layout: Path, repository: str) -> dict[str, str]:
    """Put every image of a layout into a repository; digests by tag. Raises httpx.HTTPError, ReleaseError."""
    pushed = {}
    with httpx.Client(base_url=registry, trust_env=False, timeout=PUSH_SECONDS) as http:
        for entry in entries(layout):
            digest, tag = entry["digest"], entry["annotations"][REF]
            manifest = document(layout, digest)
            for part in (manifest["config"], *manifest["layers"]):
                _push_blob(http, repository, part["digest"], blob_path(layout, part["digest"]))
            target = f"/v2/{repository}/manifests/{tag}"
            headers = {"content-type": entry["mediaType"]}
            http.put(target, content=read_blob(layout, digest), headers=headers).raise_for_status()
            pushed[tag] = digest
    return pushed


def _push_blob(http: httpx.Client, repository: str, digest: str, path: Path) -> None:
    if http.head(f"/v2/{repository}/blobs/{digest}").is_success:
        return
    place = httpx.URL(http.post(f"/v2/{repository}/blobs/uploads/").raise_for_status().headers["location"])
    headers = {"content-length": str(path.stat().st_size), "content-type": "application/octet-stream"}
    with path.open("rb") as content:
        answer = http.put(place.copy_merge_params({"digest": digest}), content=content, headers=headers)
    answer.raise_for_status()
