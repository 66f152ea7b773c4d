"""HTML and XML in requests, tags in plain texts: what stands around and within their words comes back as it was."""
