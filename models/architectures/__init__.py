"""The architectures of the papers: a file each, what they all promise (the protocol), and all of them by name."""
