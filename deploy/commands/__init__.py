"""What each subcommand does. Imported only when its subcommand runs, so that `tandem serve` never loads torch."""

LARGEST_BEAM = 100
"""The largest beam size that a command takes."""
# Of a shortlist: what is common costs a batch once, what each word lists adds up over its sentences.
TARGETS_PER_WORD, COMMON_TARGETS = 30, 300
