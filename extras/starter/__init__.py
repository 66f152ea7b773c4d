"""A corpus and a recipe made of one's own text, to begin with: `tandem new`."""
