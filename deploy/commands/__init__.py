"""What each subcommand does. Imported only when its subcommand runs, so that `tandem serve` never loads torch."""

LARGEST_BEAM = 100
"""The largest beam size that a command takes."""
