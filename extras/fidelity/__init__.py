"""Translations held against their sources: what no language changes is there, and the rest ends and begins alike."""
