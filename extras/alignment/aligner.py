"""What finds out which words belong together."""

from __future__ import annotations

from tandem.extras.alignment.pairing import align_sources, onward, written_words
from tandem.extras.alignment.projection import pairs_of_parts, parted, project
from tandem.service.bundles.aligning import WordAligner

ALIGNER = WordAligner(align_sources, onward, written_words, project, pairs_of_parts, parted)
