"""``python -m benchmarks NAME`` is `tandem bench NAME`."""

import sys

from deploy.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench"]
    main()
