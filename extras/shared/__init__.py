"""What several extras share, and the core does not need. No extra by itself: it has no port, and cannot be deleted."""
