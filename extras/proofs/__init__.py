"""Imported models beside the programs that they were published for: `tandem bench imports`, `tandem bench students`."""
