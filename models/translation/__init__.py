"""Lines of text in, lines of text out: a bundle, a search, what hypotheses say, and their ranking. Needs no torch."""
