"""The contestants of ``benchmarks/training_speed.py``, and what it measures besides."""
