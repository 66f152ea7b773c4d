"""Bundles on test sets: what they write, what it scores beside other systems, and how sure they are of it.

    decoding -> systems -> results -> evaluation;   calibration

Neither in ``service`` nor in ``training``: the runtimes are of the one, the metrics of the other.
"""
