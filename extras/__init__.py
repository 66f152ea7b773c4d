"""What the core does without: each folder can be deleted. What one brings is found by its ``port``."""
