"""The evaluation of a system as one HTML file: scores, scores by length, examples and what was attended to."""
