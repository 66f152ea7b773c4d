"""Whether the service in this container is ready: exit status 0 where ``/readyz`` answers 200, else 1 and the reason.

Runs every few seconds with ``python -IS``, so it needs neither the environment's packages nor their import time.
"""

from __future__ import annotations

import http.client
import os
import ssl
import sys

_SECONDS = 14.0  # a little less than the image's HEALTHCHECK allows, so that the reason is seen


def main() -> int:
    """Ask once, on the port that the service listens on."""
    port = int(os.environ.get("TANDEM_PORT") or 8000)
    connection: http.client.HTTPConnection
    if os.environ.get("TANDEM_TLS_CERTIFICATE"):  # names another host than 127.0.0.1, so nothing is to be verified
        unverified = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_SECONDS, context=unverified)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/readyz")
        reply = connection.getresponse()
        print(reply.read(500).decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException) as error:
        print(f"no answer from port {port}: {error}")
        return 1
    finally:
        connection.close()
    return 0 if reply.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
