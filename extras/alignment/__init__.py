"""Which words of a translation belong to which of its source, read off what the model looked at."""
