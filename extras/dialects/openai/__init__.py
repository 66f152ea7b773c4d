"""OpenAI's API for chats, so that programs that speak it can translate and summarize by changing a URL."""
