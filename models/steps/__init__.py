"""A model step by step: as the graphs that search and runtimes know, and from its logits to the best continuations."""
