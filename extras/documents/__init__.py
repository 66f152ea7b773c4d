"""Office documents, books and PDF, as types of the extra ``files``: zip archives of XML, divided member by member."""
