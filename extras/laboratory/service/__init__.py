"""The service under load: beside a naive one, over many requests, with many bundles."""
