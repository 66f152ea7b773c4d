"""Rules for weak models, as a text stage that a bundle asks for."""
