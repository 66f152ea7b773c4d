"""Dialects of other services' clients: LibreTranslate's and DeepL's contracts, spoken with our parts."""
