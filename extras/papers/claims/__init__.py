"""Tables of the papers beside small runs: `tandem bench claims`."""
