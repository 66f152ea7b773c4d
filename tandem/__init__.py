"""Tandem: translation and summarization that a team trains, exports and serves by itself."""
