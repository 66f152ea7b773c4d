"""The composition root: the `tandem` command puts models, training and service together."""
