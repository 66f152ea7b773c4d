"""What is made of finished bundles: one of several, and one with a shortlist."""
