"""Summaries without a model: the sentences of a text that say most of it."""
