"""Which model answers: the catalogue of loaded bundles, their versions, loading and readiness."""
