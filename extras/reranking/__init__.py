"""The choice among a model's hypotheses, with a model of the other direction."""
