"""Files of any size: lines in, lines out, in constant memory, on all cores, and on from where it stopped.

    sources -> pool -> [form -> decoding -> form] -> run -> output, report, journal

``BulkTranslator`` is the part in brackets: lines to lines, in one process, on one thread. `tandem translate` runs one
on every core of a machine (``pool``), Ray Data one on every core of several.
"""

from __future__ import annotations

from deploy.bulk.options import BulkOptions
from deploy.bulk.records import Finding, Line, Record
from deploy.bulk.translator import BulkTranslator

__all__ = ["BulkOptions", "BulkTranslator", "Finding", "Line", "Record"]
