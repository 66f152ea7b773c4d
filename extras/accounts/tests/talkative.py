"""A program: the service with a model that copies, logging at its most talkative. ``test_logs`` starts it."""

from __future__ import annotations

import sys
from pathlib import Path

from tandem.service.server import serve_engine
from tandem.service.settings import Settings
from tandem.service.telemetry.logs import configure_logging
from tests.service.support import copying, make_engine, tiny_bundle

CRASHING = "bahnhof"
"""A text with this word makes the model raise."""


def main(folder: Path) -> None:
    """Serve until SIGTERM, on any free port."""
    settings = Settings(port=0, data=folder / "data", bundles=(folder,), log_level="debug", max_characters=5_000)
    configure_logging(settings)
    bundle, titles = tiny_bundle(folder), tiny_bundle(folder, "titles", task="summarize", source_languages=("en",))
    graphs = copying(bundle)
    graphs.crash_encode = max(bundle.source_vocabularies[0].encode(CRASHING))  # the most special of its pieces
    serve_engine(settings, make_engine((bundle, graphs), (titles, copying(titles))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
