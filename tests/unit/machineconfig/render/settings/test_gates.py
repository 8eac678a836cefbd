"""Feature gates reach a kubelet that knows them."""

from __future__ import annotations

from fastness.machineconfig.render.settings.gates import KUBELET_GATES, RELEASE, kubelet_gates


def test_the_table_is_that_of_one_release() -> None:
    assert RELEASE == "v1.36"
    assert {"EventedPLEG", "AllAlpha", "KubeletEnsureSecretPulledImages"} <= KUBELET_GATES
    assert "AdditionalStorageConfig" not in KUBELET_GATES, "a gate of another operator"
    assert len(KUBELET_GATES) == 150


def test_a_plain_kubelet_is_told_what_it_knows() -> None:
    gates = {"MemoryQoS": True, "EventedPLEG": False, "RouteAdvertisements": True}
    assert kubelet_gates(gates, filtered=True) == ({"EventedPLEG": False, "MemoryQoS": True}, ("RouteAdvertisements",))


def test_another_kubelet_is_told_everything() -> None:
    assert kubelet_gates({"B": True, "A": False}, filtered=False) == ({"A": False, "B": True}, ())


def test_a_gate_that_every_kubelet_of_ours_needs_is_not_turned_off() -> None:
    gates = {"RotateKubeletServerCertificate": False, "AllBeta": False, "MemoryQoS": False}
    for filtered in (True, False):
        assert kubelet_gates(gates, filtered=filtered) == (
            {"MemoryQoS": False},
            ("AllBeta", "RotateKubeletServerCertificate"),
        )
    on = dict.fromkeys(gates, True)
    assert kubelet_gates(on, filtered=True) == (dict(sorted(on.items())), ())
