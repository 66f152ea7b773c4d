"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(name="reranking", reranker="tandem.extras.reranking.ranking:decode_ranked")
