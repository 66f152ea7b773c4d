"""The edge: bytes become requests, and replies and errors become bytes."""
