"""Bundles from elsewhere: archives and folders, and public models that other extras make bundles of."""
