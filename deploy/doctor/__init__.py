"""`tandem doctor`: what was found on this machine, what it means for serving, and how fast it is."""
