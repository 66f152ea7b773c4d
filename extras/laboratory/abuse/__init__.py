"""What the service must survive: overload, clients that leave, generated requests, and its own death."""
