"""The whole cluster in one thread and in virtual time: doors, controllers, machines, and faults that a seed chooses."""
