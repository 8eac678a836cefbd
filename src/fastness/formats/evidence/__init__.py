"""Evidence and what it is made of, as bytes."""
