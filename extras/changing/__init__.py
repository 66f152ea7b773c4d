"""Which models are served, changed while the service answers: loaded, switched, rolled back and unloaded."""
