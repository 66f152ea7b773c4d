"""``python -m tandem`` is the `tandem` command."""

from tandem.deploy.cli import main

main()
