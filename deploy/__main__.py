"""``python -m deploy`` is the `tandem` command."""

from deploy.cli import main

main()
