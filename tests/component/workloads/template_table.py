"""Templates that ours and Go's must agree on: the same text, or an error on both sides.

Each line of a file in `templates` is one template over `DATA`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

DATA: Final = {
    "pci": {"device": [
        {"vendor": "10de", "device": "2331", "class": "0302", "iommu/type": "DMA"},
        {"vendor": "8086", "device": "1", "class": "0200", "iommu/type": ""},
    ]},
    "cpu": {"cpuid": [{"Name": "AVX512F"}, {"Name": "SSE42"}, {"Name": "VMX"}], "model": [{"Name": "family", "Value": "6"}]},
    "kernel": {"version": [{"Name": "full", "Value": "5.14.0-427.el9"}, {"Name": "major", "Value": "5"}], "loadedmodule": []},
    "ünï": {"cödé": [{"Name": "größe", "Value": "naïve café"}]},
}  # fmt: skip
_FILES: Final = Path(__file__).parent / "templates"
TABLES: Final = tuple(sorted(path.stem for path in _FILES.glob("*.txt")))


def templates(table: str) -> list[str]:
    """The templates of one table."""
    return (_FILES / f"{table}.txt").read_text().rstrip("\n").split("\n")
