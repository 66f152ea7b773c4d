"""From corpora to batches: read, filter, encode once (`prepare`), then plan and collate batches every epoch."""
