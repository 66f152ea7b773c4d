"""Public models of other programs as bundles: a file for each form, and one mapping of weights that all share."""
