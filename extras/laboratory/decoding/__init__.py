"""Decoding beside what a user would pick instead, each behind the interface of ``systems``."""
