"""What each subcommand does. Imported only when its subcommand runs, so that `tandem serve` never loads torch."""
