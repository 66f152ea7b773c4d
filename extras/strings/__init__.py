"""Strings of programs: accelerators of labels, escaped apostrophes, lines of code."""
