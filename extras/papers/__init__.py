"""What belongs to the papers: their corpora, what they plot of attention, and what their tables claim."""
