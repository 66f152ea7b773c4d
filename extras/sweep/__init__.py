"""`tandem sweep`: a recipe trained with every combination of some values, and which of them is better."""
