"""Files of any size: lines in, lines out, in constant memory, on all cores, and on from where it stopped.

    sources -> pool -> [form -> OfflineDecoder -> form] -> run -> output, report

``BulkTranslator`` is the part in brackets: lines to lines, in one process, on one thread. `tandem translate` runs one
on every core of a machine (``pool``), Ray one on every core of several. How far a run has come is how many lines
it has written; the journal beside them says what it was begun with.
"""
