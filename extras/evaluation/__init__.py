"""Bundles and runs on test sets: what they write, what it scores beside other systems, how sure they are of it, and how
runs learnt.

    decoding -> systems -> results -> evaluation;   calibration;   curve
"""
