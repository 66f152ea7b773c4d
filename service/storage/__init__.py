"""What outlives the process, in SQLite."""
