"""Files translated in the background: uploads kept on disk, jobs in SQLite, read and written in processes of their own.

    upload -> reading (child process) -> slices in SQLite -> TextService.translate -> writing (child process) -> result

``formats`` and what it stands on are imported by the child process too, and stay light: no pydantic, no model.
"""
