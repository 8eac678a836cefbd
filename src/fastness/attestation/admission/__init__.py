"""Rules about the objects that trust rests on, and what a change of them lowers."""
