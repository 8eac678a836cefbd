"""CustomResourceDefinitions that are wrong: the embedded API refuses the same ones as a real kube-apiserver, for the same fields.

Each definition goes to the real server as a dry run. What differs on purpose stands in `STRICTER`, with the reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from fastness.apiserver.catalog import Catalog, check_crd, default_crd
from tests.realkube import RealKube
from tests.unit.apiserver.samples import crd

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CATALOG = Catalog.build(())


def version(**changes: Any) -> dict[str, Any]:
    return {**crd()["spec"]["versions"][0], **changes}


def names(**changes: Any) -> dict[str, Any]:
    return {**crd()["spec"]["names"], **changes}


def column(**changes: Any) -> dict[str, Any]:
    return {
        "versions": [version(additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".a", **changes}])]
    }


def schema(**changes: Any) -> dict[str, Any]:
    return {"versions": [version(schema={"openAPIV3Schema": {"type": "object", **changes}})]}


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "group-empty": {"group": ""},
    "group-upper": {"group": "Example.com"},
    "group-without-dot": {"group": "example"},
    "scope-unknown": {"scope": "Galaxy"},
    "scope-missing": {"scope": ""},
    "preserve": {"preserveUnknownFields": True},
    "plural-missing": {"names": names(plural="")},
    "plural-upper": {"names": names(plural="Widgets")},
    "singular-upper": {"names": names(singular="Big")},
    "kind-missing": {"names": {"plural": "widgets", "kind": ""}},
    "kind-odd": {"names": names(kind="Wid get")},
    "list-kind-same": {"names": names(listKind="Widget")},
    "short-name-odd": {"names": names(shortNames=["ok", "Not_ok"])},
    "category-odd": {"names": names(categories=["A B"])},
    "other-plural": {"names": names(plural="other")},
    "no-versions": {"versions": []},
    "no-storage": {"versions": [version(storage=False)]},
    "two-storages": {"versions": [version(), version(name="v2")]},
    "same-version-twice": {"versions": [version(), version(storage=False)]},
    "version-upper": {"versions": [version(name="V1")]},
    "no-schema": {"versions": [version(schema=None)]},
    "column-without-name": column(name=""),
    "column-type": column(type="text"),
    "column-format": column(format="odd"),
    "column-format-good": column(format="int64", type="integer"),
    "column-path-missing": column(jsonPath=""),
    "column-path-without-dot": column(jsonPath="a"),
    "scale-half": {
        "versions": [version(subresources={"scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ""}})]
    },
    "scale-elsewhere": {
        "versions": [version(subresources={"scale": {"specReplicasPath": ".a.b", "statusReplicasPath": ".status.r"}})]
    },
    "scale-selector": {
        "versions": [
            version(
                subresources={
                    "scale": {
                        "specReplicasPath": ".spec.r",
                        "statusReplicasPath": ".status.r",
                        "labelSelectorPath": ".x.y",
                    }
                }
            )
        ]
    },
    "scale-good": {
        "versions": [
            version(
                subresources={
                    "scale": {
                        "specReplicasPath": ".spec.r",
                        "statusReplicasPath": ".status.r",
                        "labelSelectorPath": ".status.s",
                    }
                }
            )
        ]
    },
    "conversion-unknown": {"conversion": {"strategy": "Magic"}},
    "schema-untyped-field": schema(properties={"a": {}}),
    "schema-root-string": {"versions": [version(schema={"openAPIV3Schema": {"type": "string"}})]},
    "schema-list-without-items": schema(properties={"a": {"type": "array"}}),
}
STRICTER = {
    "column-path-odd": (column(jsonPath=".a["), "a real server accepts it and then prints no columns at all"),
    "webhook": (
        {
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/x"}},
            }
        },
        "nothing here calls a conversion webhook",
    ),
}


# A real server judges a definition with one version in an older form that has no versions, and names fields of that form.
OLD_FORM = (
    ("spec.validation.", "spec.versions[0].schema."),
    ("spec.subresources.", "spec.versions[0].subresources."),
    ("spec.additionalPrinterColumns[", "spec.versions[0].additionalPrinterColumns["),
    (".JSONPath", ".jsonPath"),
)


# Consequences of the same mistake in fields that nobody wrote.
FOLLOWING = ("status.storedVersions", "spec.version")


def in_present_form(field: str) -> str:
    for old, new in OLD_FORM:
        field = field.replace(old, new)
    return field


def judged_by_real(real_kube: RealKube, manifest: dict[str, Any]) -> tuple[int, set[tuple[str, str]]]:
    with real_kube.client() as admin:
        answer = admin.post(PATH, json=manifest, params={"dryRun": "All"})
    causes = answer.json().get("details", {}).get("causes", []) if answer.status_code != 201 else []
    return answer.status_code, {
        (in_present_form(cause["field"]), cause["reason"]) for cause in causes if cause["field"] not in FOLLOWING
    }


@pytest.mark.parametrize("case", CASES)
def test_the_same_definitions_are_refused_for_the_same_fields(real_kube: RealKube, case: str) -> None:
    manifest = default_crd(crd("widgets", "Widget", **{"group": "judged.example.com", **CASES[case]}))
    code, real = judged_by_real(real_kube, manifest)
    mine = {(cause.field, cause.reason) for cause in check_crd(manifest, CATALOG)}
    assert (422 if mine else 201) == code
    assert mine == real


@pytest.mark.parametrize("case", STRICTER)
def test_what_is_stricter_here_is_accepted_there(real_kube: RealKube, case: str) -> None:
    manifest = default_crd(crd("widgets", "Widget", **{"group": "judged.example.com", **STRICTER[case][0]}))
    assert judged_by_real(real_kube, manifest)[0] == 201
    assert check_crd(manifest, CATALOG)
