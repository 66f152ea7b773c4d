"""What a user would pick instead, each behind the interface of :mod:`deploy.bench.systems`, used where installed."""
