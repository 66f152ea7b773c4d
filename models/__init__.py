"""Architectures, search, vocabularies and bundles. Importing this package loads nothing heavy."""
