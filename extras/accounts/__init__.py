"""Who uses a server: keys, rate limits, quotas, and what a key's callers keep (memory and glossaries)."""
