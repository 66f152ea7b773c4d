"""DeepL's API, versions 2 and 3 (glossaries), so that its clients work by changing the server's address."""
