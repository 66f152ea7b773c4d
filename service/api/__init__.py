"""The words of the HTTP contract: requests, replies and their examples. No behaviour."""
