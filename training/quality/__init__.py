"""How good text is that a model wrote: scores, their significance, symptoms and confidence."""
