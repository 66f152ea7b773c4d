"""What a GPU is to prove in a few minutes: it finds what a CPU finds, in both precisions, and how fast, beside others.

``command`` lists the lines and shows them, ``lines`` runs each of them in a process that may fail, ``work`` holds what
is decoded and trained. What has to be installed for a line is imported by that line.
"""
