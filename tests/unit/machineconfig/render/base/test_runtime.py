"""The container runtime's files are what their readers can read."""

from __future__ import annotations

import tomllib

from fastness.formats import json
from fastness.machineconfig.render.base.runtime import POLICY_JSON, REGISTRIES_CONF, STORAGE_CONF


def test_storage_has_the_tables_that_other_configs_change() -> None:
    storage = tomllib.loads(STORAGE_CONF)["storage"]
    assert storage["driver"] == "overlay"
    assert storage["graphroot"] == "/var/lib/containers/storage"
    assert storage["options"] == {"additionalimagestores": [], "overlay": {"skip_mount_home": "true", "size": ""}}


def test_registries_say_where_short_names_are_looked_for_and_nothing_else() -> None:
    assert list(tomllib.loads(REGISTRIES_CONF)) == ["unqualified-search-registries"]


def test_the_policy_accepts_what_no_other_config_restricts() -> None:
    anything = [{"type": "insecureAcceptAnything"}]
    assert json.decode(POLICY_JSON.encode()) == {"default": anything, "transports": {"docker-daemon": {"": anything}}}
