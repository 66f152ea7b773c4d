"""What the papers tell of attention, of any bundle: `tandem analyse`."""
