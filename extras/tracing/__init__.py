"""OpenTelemetry traces of requests, to a collector."""
