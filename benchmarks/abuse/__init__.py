"""What the service must survive: overload, clients that leave, faults, generated requests, and its own death."""
