"""Who may do how much: keys, rate limits, quotas."""
