"""Who goes next, what it must do, what is reported."""
