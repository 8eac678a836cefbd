"""Create: what the server adds, and what it refuses."""

from __future__ import annotations

import re

import pytest

from fastness.kube.errors import AlreadyExists, ApiError, BadRequest, Invalid, NotFound
from fastness.kube.port import Cluster, WriteOptions
from tests.contract.kinds import CONFIG_MAP, POOL, TICKET, UNKNOWN, VALUES, config_map, pool, ticket, value_set

UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


async def test_create_fills_in_identity_and_time(cluster: Cluster, namespace: str) -> None:
    made = (await cluster.create(CONFIG_MAP, config_map(namespace, "one")))["metadata"]
    assert UUID.match(made["uid"])
    assert made["resourceVersion"].isdigit()
    assert re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", made["creationTimestamp"])
    assert "generation" not in made


async def test_create_of_a_custom_kind_starts_at_generation_one_with_defaults(cluster: Cluster, unique: str) -> None:
    made = await cluster.create(TICKET, ticket(unique))
    assert made["metadata"]["generation"] == 1
    assert made["spec"]["uses"] == 1


async def test_create_records_the_field_manager(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one"), WriteOptions(manager="tester"))
    entries = made["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in entries] == [("tester", "Update")]


async def test_create_drops_status_where_status_has_its_own_door(cluster: Cluster, unique: str) -> None:
    made = await cluster.create(POOL, {**pool(unique), "status": {"machineCount": 3}})
    assert "status" not in made


async def test_a_name_that_is_taken_is_refused(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    with pytest.raises(AlreadyExists) as caught:
        await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    assert caught.value.message == 'configmaps "one" already exists'
    assert (caught.value.code, caught.value.name) == (409, "one")


async def test_generate_name_makes_a_new_name_each_time(cluster: Cluster, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "generateName": "gen-"}}
    first, second = await cluster.create(CONFIG_MAP, body), await cluster.create(CONFIG_MAP, body)
    made = [obj["metadata"]["name"] for obj in (first, second)]
    assert made[0] != made[1]
    assert all(re.match(r"^gen-[a-z0-9]{5}$", name) for name in made)
    assert "name" not in body["metadata"], "the caller's object is not changed"


async def test_an_object_without_any_name_is_invalid(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(Invalid) as caught:
        await cluster.create(
            CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace}}
        )
    assert [cause.field for cause in caught.value.causes] == ["metadata.name"]


async def test_a_bad_name_is_invalid_and_the_cause_says_where(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(Invalid) as caught:
        await cluster.create(CONFIG_MAP, config_map(namespace, "Upper_Case"))
    assert [(cause.field, cause.reason) for cause in caught.value.causes] == [("metadata.name", "FieldValueInvalid")]


async def test_schema_violations_are_invalid_with_one_cause_each(cluster: Cluster, unique: str) -> None:
    body = ticket(unique)
    body["spec"] = {"pool": "worker", "expires": "2030-01-01T00:00:00Z", "secretHash": "md5:1", "uses": -1}
    with pytest.raises(Invalid) as caught:
        await cluster.create(TICKET, body)
    assert {cause.field for cause in caught.value.causes} == {"spec.secretHash", "spec.uses"}
    assert (caught.value.group, caught.value.kind, caught.value.name) == ("fastness.dev", "JoinTicket", unique)


async def test_a_missing_required_field_is_named(cluster: Cluster, unique: str) -> None:
    body = ticket(unique)
    del body["spec"]["pool"]
    with pytest.raises(Invalid) as caught:
        await cluster.create(TICKET, body)
    # A second cause may say that rules were not evaluated.
    assert (caught.value.causes[0].field, caught.value.causes[0].reason) == ("spec.pool", "FieldValueRequired")


async def test_rules_across_fields_are_enforced(cluster: Cluster, unique: str) -> None:
    body = value_set(unique, ("pcr4", "00"))
    body["spec"]["source"] = "image"
    with pytest.raises(Invalid) as caught:
        await cluster.create(VALUES, body)
    assert "image is required for source image" in caught.value.message


async def test_a_field_that_the_schema_does_not_know_is_dropped(cluster: Cluster, unique: str) -> None:
    body = ticket(unique)
    body["spec"]["surplus"] = {"a": 1}
    made = await cluster.create(TICKET, body)
    assert "surplus" not in made["spec"]


async def test_a_dry_run_answers_as_a_create_and_keeps_nothing(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "dry"), WriteOptions(dry_run=True))
    assert UUID.match(made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await cluster.get(CONFIG_MAP, "dry", namespace)


async def test_a_dry_run_is_validated(cluster: Cluster, unique: str) -> None:
    body = ticket(unique)
    body["spec"]["uses"] = -1
    with pytest.raises(Invalid):
        await cluster.create(TICKET, body, WriteOptions(dry_run=True))


async def test_create_in_a_namespace_that_does_not_exist_is_not_found(cluster: Cluster, unique: str) -> None:
    with pytest.raises(NotFound) as caught:
        await cluster.create(CONFIG_MAP, config_map(f"{unique}-absent", "one"))
    assert caught.value.message == f'namespaces "{unique}-absent" not found'


async def test_create_of_a_namespaced_kind_without_a_namespace_is_refused(cluster: Cluster) -> None:
    with pytest.raises(BadRequest):
        await cluster.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nowhere"}})


async def test_create_of_another_kind_than_the_resource_is_refused(cluster: Cluster, unique: str) -> None:
    with pytest.raises(BadRequest):
        await cluster.create(TICKET, pool(unique))


async def test_create_of_a_kind_that_is_not_served_is_not_found(cluster: Cluster) -> None:
    body = {"apiVersion": "nowhere.example/v1", "kind": "Thing", "metadata": {"name": "x"}}
    with pytest.raises(NotFound):
        await cluster.create(UNKNOWN, body)


async def test_a_version_in_a_create_is_refused(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(ApiError, match="resourceVersion should not be set on objects to be created"):
        await cluster.create(CONFIG_MAP, config_map(namespace, "one", resourceVersion="7"))
