"""One server and one browser for this folder: pytest gives fixtures to a package."""
