"""Layers that at least two architectures share verbatim."""
