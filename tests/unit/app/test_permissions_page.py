"""Fastness needs nothing outside its namespace that the chart does not list, and the page says why of each right."""

from __future__ import annotations

from pathlib import Path

import yaml

from fastness.app.accounts import ACCOUNTS
from fastness.kinds.fastness_dev import NAMESPACE

ROOT = Path(__file__).resolve().parents[3]
OF_ROLES = (ROOT / "docs/reference/permissions.md").read_text().partition("\n## People\n")[0]
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in OF_ROLES.splitlines()
    if line.startswith("| ") and not line.startswith(("| where", "| ---"))
]


def test_every_right_that_the_chart_gives_has_a_row_with_a_reason() -> None:
    listed = {(row[0], resource.strip(" `")) for row in ROWS for resource in row[1].split(",")}
    for path in (ROOT / "deploy/chart/files/accounts").glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            if not document or document["kind"] not in ("Role", "ClusterRole"):
                continue
            place = document["metadata"].get("namespace") or "the whole cluster"
            for rule in document.get("rules") or ():
                group = rule["apiGroups"][0]
                for resource in rule.get("resources") or ():
                    name = f"{resource}.{group}" if group else resource
                    assert (place, name) in listed, (path.name, place, name)
    assert all(len(row) == 5 and row[4] for row in ROWS)


def test_no_role_has_a_wildcard_or_writes_everywhere_what_it_could_write_at_home() -> None:
    for role in ACCOUNTS:
        for group, resources, verbs, *_ in (*role.writes, *role.everywhere, *role.within):
            assert "*" not in (group, *resources, *verbs), role.name
    outside = {row[0] for row in ROWS} - {NAMESPACE, "the whole cluster"}
    for path in (ROOT / "deploy/chart/files/accounts").glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document["kind"] == "Role" and document["metadata"]["namespace"] != NAMESPACE:
                assert document["metadata"]["namespace"] in outside
