"""Where public models are published, and how they come here."""
