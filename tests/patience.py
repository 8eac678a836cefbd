"""How long a test waits for what must happen. It is a bound for a test that is broken, never a measure of speed."""

PATIENCE = 90.0  # seconds; six lanes on two cores hold a healthy server up for ten of them
