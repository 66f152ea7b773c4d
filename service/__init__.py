"""The HTTP service: text handling, scheduler, runtimes. Imports nothing heavy by itself."""
