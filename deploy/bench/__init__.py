"""`tandem bench`: how fast decoding and serving are, beside what a user would pick instead, measured in one run."""
