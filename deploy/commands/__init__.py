"""Commands that need both training and service. The others' functions stand in those packages, beside their work."""
