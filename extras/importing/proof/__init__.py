"""The proof that imported models are what was published, beside the published programs; `tandem bench imports`."""
