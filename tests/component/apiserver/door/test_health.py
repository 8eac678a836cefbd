"""Health with reasons, and metrics that are true when they are read."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from fastness.http.health import Health
from fastness.observe import metrics
from tests.embedded.fixtures import Embedded

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def test_probes_list_their_checks_when_asked(embedded_server: Embedded) -> None:
    async with embedded_server.client(certificate=False) as client:
        assert (await client.get("/readyz")).text == "ok"
        verbose = await client.get("/readyz?verbose")
        assert verbose.text == "[+]ping ok\n[+]store ok\nreadyz check passed\n"
        assert (await client.get("/livez?verbose")).text == "[+]ping ok\nlivez check passed\n"
        assert (await client.get("/readyz/store")).text == "ok"
        assert (await client.get("/livez/store")).status_code == 404
        assert (await client.get("/readyz/nonsense")).status_code == 404
        assert (await client.post("/readyz")).status_code == 405


async def test_a_failing_check_tells_its_reason(embedded_server: Embedded) -> None:
    problem: list[str | None] = ["waits for Pod, Node"]
    embedded_server.server.health.add("controllers", lambda: problem[0])
    async with embedded_server.client(certificate=False) as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 500
        assert "[-]controllers failed: waits for Pod, Node" in answer.text.splitlines()
        assert (await client.get("/readyz/controllers")).status_code == 500
        assert (await client.get("/livez")).text == "ok"
        problem[0] = ""
        assert (await client.get("/readyz")).status_code == 500, "a reason without words is one all the same"
        problem[0] = None
        assert (await client.get("/readyz")).text == "ok"


def test_a_check_may_count_for_liveness_too() -> None:
    health = Health()
    health.add("heart", lambda: "stopped", only_ready=False)
    assert health.problems(ready=False) == {"ping": None, "heart": "stopped"}


async def test_metrics_parse_and_hold_everything_that_is_declared(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        await client.get("/version")
        answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    declared = {meter.name.removesuffix("_total") for meter in metrics.REGISTRY}
    assert declared <= families.keys()
    # Those of the runtime and of builds have the names that dashboards of their operators ask for.
    assert all(name.startswith(("fastness_", "kata_", "ocl_", "mco_")) for name in families)
    assert all(family.documentation for family in families.values())


async def test_the_figures_of_the_store_are_those_of_the_moment(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        before = await _figures(client)
        for number in range(3):
            await client.post(CONFIGMAPS, json={"metadata": {"name": f"c-{number}"}})
        after = await _figures(client)
    store = embedded_server.server.api.store
    assert after["fastness_store_objects"] == before["fastness_store_objects"] + 3
    assert after["fastness_store_revision"] == store.revision
    assert after["fastness_store_commits"] > before["fastness_store_commits"]
    assert after["fastness_store_waiting_changes"] == 0


async def test_labels_do_not_grow_with_what_strangers_send(embedded_server: Embedded) -> None:
    async with embedded_server.client() as client:
        for method in ("PURGE", "TRACE", "SEARCH"):
            await client.request(method, "/nothing")
        for number in range(5):
            await client.get(f"/apis/group-{number}.example/v1/things")
        text = (await client.get("/metrics")).text
    assert "PURGE" not in text
    assert "group-1" not in text
    assert 'method="other"' in text


async def _figures(client: object) -> dict[str, float]:
    text = (await client.get("/metrics")).text  # type: ignore[attr-defined]
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.labels
    }
