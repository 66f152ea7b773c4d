"""Training beside other trainers, what a step is made of, and what the preparation and the reading of corpora take."""
