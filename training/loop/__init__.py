"""The training loop: batches, losses, updates, validation, going on where a run stopped; `tandem train`."""
