"""What the tests on a bed share: kubectl in a namespace of the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed import Bed
from tests.bed.kubectl import Kubectl


@pytest.fixture
def kubectl(bed: Bed) -> Iterator[Kubectl]:
    with Kubectl.in_new_namespace(bed.kube.kubeconfig) as kubectl:
        yield kubectl
