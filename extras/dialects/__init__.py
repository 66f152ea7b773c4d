"""Dialects of other services' clients: DeepL's and OpenAI's contracts, and tools for language models (MCP)."""
