"""Bundles on test sets: what they write, what it scores beside other systems, and what they attend to.

    decoding -> systems -> evaluation (with reports), comparison;   analysis, robustness, calibration

Neither in ``service`` nor in ``training``: the runtimes are of the one, the metrics of the other.
"""
