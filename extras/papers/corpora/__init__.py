"""From the files that a corpus is distributed as to parallel text that a recipe can name: ``tandem corpus``."""
