"""Text in, sentences out, and back again with the layout kept."""
