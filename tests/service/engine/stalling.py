"""A program: the service with a model that never answers, which is being loaded again. ``test_stalls`` starts it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from tandem.service import server
from tandem.service.engine import Engine, EngineOptions
from tandem.service.settings import Settings
from tandem.service.telemetry.logs import configure_logging
from tests.service.support import copying, tiny_bundle


def main(folder: Path) -> None:
    """Serve until the device is lost, on any free port."""
    settings = Settings(port=0, bundles=(folder,), probe_timeout=0.1)
    configure_logging(settings)
    bundle = tiny_bundle(folder)
    graphs = copying(bundle)
    graphs.gate.clear()
    engine = Engine(EngineOptions(stall=0.5))
    engine.add(bundle, graphs)
    threading.Thread(target=threading.Event().wait).start()
    server._LAST_SECONDS = 1.0
    server.serve_engine(settings, engine)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
