"""A ContainerRuntimeConfig becomes drop-ins and the storage library's file, and nothing of that file is lost."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import toml
from fastness.machineconfig.render.base.runtime import STORAGE_CONF
from fastness.machineconfig.render.container_runtime import containerruntime_spec
from fastness.machineconfig.render.errors import BadSettings
from tests.unit.formats.test_toml import DOCUMENTS
from tests.unit.machineconfig.render.made_files import files

JsonObject = dict[str, Any]
STORAGE = "/etc/containers/storage.conf"


def runtime(**settings: Any) -> JsonObject:
    return {"kind": "ContainerRuntimeConfig", "metadata": {"name": "c"}, "spec": {"containerRuntimeConfig": settings}}


def stores(*paths: str) -> list[JsonObject]:
    return [{"path": path} for path in paths]


def made(**settings: Any) -> dict[str, str]:
    return files(containerruntime_spec(runtime(**settings), stores=True))


def test_the_log_level_is_the_drop_in_of_the_manual() -> None:
    spec = containerruntime_spec(runtime(logLevel="debug"))
    [(path, text)] = files(spec).items()
    assert path == "/etc/crio/crio.conf.d/01-ctrcfg-logLevel"
    assert text == '[crio]\n  [crio.runtime]\n    log_level = "debug"\n'
    assert spec["config"]["storage"]["files"][0]["mode"] == 0o644


def test_every_setting_is_a_drop_in_of_its_own() -> None:
    written = made(
        pidsLimit=4096, logSizeMax="16Ki", defaultRuntime="crun", additionalArtifactStores=stores("/a", "/b")
    )
    settings = {path.rpartition("-")[2]: tomllib.loads(text) for path, text in written.items()}
    assert {name: table["crio"]["runtime"] for name, table in settings.items()} == {
        "pidsLimit": {"pids_limit": 4096},
        "logSizeMax": {"log_size_max": 16384},
        "defaultRuntime": {"default_runtime": "crun"},
        "additionalArtifactStores": {"additional_artifact_stores": ["/a", "/b"]},
    }


def test_a_limit_of_zero_is_an_empty_table() -> None:
    assert made(pidsLimit=0) == {"/etc/crio/crio.conf.d/01-ctrcfg-pidsLimit": "[crio]\n  [crio.runtime]\n"}


@pytest.mark.parametrize("size", ["-1", -1, "8193", "1M"])
def test_sizes_of_logs_that_are_good(size: Any) -> None:
    assert len(made(logSizeMax=size)) == 1


@pytest.mark.parametrize("settings", [{}, {"logSizeMax": "0"}, {"logSizeMax": 0}, {"overlaySize": "0"}, {"logLevel": ""},
                                      {"defaultRuntime": ""}, {"containerGomaxprocsBehavior": "Disabled"}])  # fmt: skip
def test_what_says_nothing_writes_nothing(settings: JsonObject) -> None:
    assert made(**settings) == {}


def test_storage_keeps_what_the_base_has() -> None:
    written = made(overlaySize="8G", additionalLayerStores=stores("/l", "/m:ref"), additionalImageStores=stores("/i"))
    assert list(written) == [STORAGE]
    base, after = tomllib.loads(STORAGE_CONF), tomllib.loads(written[STORAGE])
    options = after["storage"].pop("options")
    assert options.pop("size") == "8G"
    assert options.pop("additionallayerstores") == ["/l:ref", "/m:ref"]
    assert options.pop("additionalimagestores") == ["/i"]
    expected = base["storage"].pop("options")
    del expected["additionalimagestores"]
    assert (options, after) == (expected, base)


@given(DOCUMENTS, st.sampled_from(["8G", "500Mi"]))
def test_no_other_line_of_any_storage_file_is_lost(base: JsonObject, size: str) -> None:
    base.pop("storage", None)
    document = {**base, "storage": {"driver": "overlay", "options": {"other": 1}}}
    spec = containerruntime_spec(runtime(overlaySize=size), storage_conf=toml.encode(document))
    after = tomllib.loads(files(spec)[STORAGE])
    assert after == {**base, "storage": {"driver": "overlay", "options": {"other": 1, "size": size}}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pidsLimit": -1}, "invalid PidsLimit -1"),
        ({"pidsLimit": 19}, "invalid PidsLimit 19"),
        ({"pidsLimit": "x"}, "invalid PidsLimit x"),
        ({"logSizeMax": 8192}, 'invalid LogSizeMax "8192", cannot be less than 8kB'),
        ({"logSizeMax": "8Ki"}, 'invalid LogSizeMax "8Ki", cannot be less than 8kB'),
        ({"logSizeMax": "1"}, 'invalid LogSizeMax "1", cannot be less than 8kB'),
        ({"logSizeMax": "much"}, "logSizeMax: 'much' is not a quantity"),
        ({"overlaySize": "-1"}, 'invalid OverlaySize "-1", cannot be less than 0'),
        ({"overlaySize": "8e9"}, 'invalid OverlaySize "8e9", write it as in 8G or 500Mi'),
        ({"overlaySize": "8E"}, 'invalid OverlaySize "8E", write it as in 8G or 500Mi'),
        ({"logLevel": "loud"}, 'invalid LogLevel "loud", must be one of fatal, panic, error, warn, info, debug, trace'),
        ({"defaultRuntime": "gvisor"}, 'invalid DefaultRuntime "gvisor", must be one of crun, runc'),
        ({"containerGomaxprocsBehavior": "Autosize"}, "containerGomaxprocsBehavior Autosize is not supported"),
        ({"additionalImageStores": stores("/a", "/a")}, "additionalImageStores must not contain duplicate paths"),
        ({"additionalLayerStores": stores("a")},
         "additionalLayerStores: 'a' is not an absolute path of letters, digits, '/', '.', '_' and '-'"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused_in_these_words(settings: JsonObject, message: str) -> None:
    with pytest.raises(BadSettings) as refused:
        containerruntime_spec(runtime(**settings), stores=True)
    assert refused.value.message == message


@pytest.mark.parametrize("path", ["/a//b", '/a"\n[crio]', "/a b", "/a:ref", None])
@pytest.mark.parametrize("name", ["additionalImageStores", "additionalArtifactStores"])
def test_a_path_never_leaves_its_line(name: str, path: Any) -> None:
    with pytest.raises(BadSettings, match="is not an absolute path"):
        containerruntime_spec(runtime(**{name: [{"path": path}]}), stores=True)


@pytest.mark.parametrize("name", ["additionalLayerStores", "additionalImageStores", "additionalArtifactStores"])
def test_stores_need_their_gate(name: str) -> None:
    with pytest.raises(BadSettings) as refused:
        containerruntime_spec(runtime(**{name: stores("/a")}))
    assert refused.value.message == (
        f"{name} needs the feature gate AdditionalStorageConfig: enable it in the FeatureGate cluster"
    )


@pytest.mark.parametrize(
    ("settings", "way"),
    [
        ({"logLevel": "debug"}, "/etc/containerd/config.toml"),
        ({"pidsLimit": 0}, "podPidsLimit"),
        ({"logSizeMax": "1M"}, "containerLogMaxSize"),
        ({"overlaySize": "8G"}, "ephemeral-storage"),
        ({"defaultRuntime": "runc"}, "RuntimeClass"),
        ({"additionalLayerStores": stores("/a")}, "snapshotter"),
        ({"additionalImageStores": stores("/a")}, "import"),
        ({"additionalArtifactStores": stores("/a")}, "registry"),
    ],
)
def test_a_pool_with_containerd_refuses_what_only_crio_has_and_says_the_way(settings: JsonObject, way: str) -> None:
    with pytest.raises(
        BadSettings, match=r"is a setting of CRI-O, and the machines of this pool run containerd: "
    ) as refused:
        containerruntime_spec(runtime(**settings), "containerd", stores=True)
    assert way in refused.value.message


def test_a_pool_with_containerd_takes_what_asks_for_nothing() -> None:
    assert files(containerruntime_spec(runtime(), "containerd")) == {}
