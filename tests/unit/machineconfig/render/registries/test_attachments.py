"""registries.d: where signatures are looked for."""

from __future__ import annotations

from typing import Any

import yaml

from tests.unit.machineconfig.render.registries.build import idms, image, itms, signed, written

FILE = "/etc/containers/registries.d/sigstore-registries.yaml"


def places(*given: Any) -> set[str]:
    document = yaml.safe_load(written(*given)[FILE])
    assert set(document) == {"docker"}
    assert all(value == {"use-sigstore-attachments": True} for value in document["docker"].values())
    return set(document["docker"])


def test_every_scope_is_there() -> None:
    assert places(None, signed("p", "a.io", "*.b.io", "c.io/x:tag")) == {"a.io", "*.b.io", "c.io/x:tag"}


def test_every_mirror_that_serves_a_scope_is_there() -> None:
    given = (None, idms("a", {"a.io": ["m.io", "n.io/p"]}), itms("b", {"a.io": ["t.io"]}), signed("p", "a.io/ns"))
    assert places(*given) == {"a.io/ns", "m.io/ns", "n.io/p/ns", "t.io/ns"}


def test_of_a_scope_with_a_tag_the_repository_is_served() -> None:
    assert places(None, idms("a", {"a.io": ["m.io"]}), signed("p", "a.io/x:1")) == {"a.io/x:1", "m.io/x"}


def test_parts_of_a_scope_and_their_mirrors_are_there_and_wildcards_by_their_mirrors() -> None:
    given = (
        None,
        idms("a", {"a.io/ns": ["m.io/ns"], "r.b.io": ["n.io"], "*.s.b.io": ["w.io"], "c.io": ["o.io"]}),
        signed("p", "a.io", "*.b.io"),
    )
    assert places(*given) == {"a.io", "*.b.io", "a.io/ns", "m.io/ns", "r.b.io", "n.io", "w.io"}


def test_mirrors_that_an_entry_got_from_a_source_are_there() -> None:
    given = (image(insecure=["a.io/ns/app"]), idms("a", {"a.io": ["m.io"]}), signed("p", "a.io/ns/app"))
    assert places(*given) == {"a.io/ns/app", "m.io/ns/app"}


def test_scopes_of_namespaces_are_there_unless_they_are_left_out() -> None:
    given = (None, signed("p", "a.io"), signed("q", "a.io/x", "b.io", namespace="team"))
    assert places(*given) == {"a.io", "b.io"}


def test_without_policies_there_is_no_file() -> None:
    assert FILE not in written(image(blocked=["a.io"]), idms("a", {"a.io": ["m.io"]}))
