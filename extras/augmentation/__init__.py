"""Training text that is another one in every epoch: noise, BPE dropout, and things to copy (`tandem train`)."""
