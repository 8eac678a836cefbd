"""What an attestation costs the API server, counted at the port: a storm of machines is a storm of these requests."""

from __future__ import annotations

from tests.counting import attestations_of_one_machine
from tests.embedded.fixtures import Embedded

MOST = 6


async def test_an_attestation_asks_the_api_at_most_six_times(embedded_server: Embedded) -> None:
    first, again = await attestations_of_one_machine(embedded_server.cluster)
    assert first["create SpentChallenge"] == again["create SpentChallenge"] == 1, "it was counted at all"
    assert first.total() <= MOST, first
    assert again.total() <= MOST, again
