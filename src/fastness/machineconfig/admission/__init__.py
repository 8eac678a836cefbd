"""Rules about machine configuration."""
