"""The domain: a request becomes a plan, sentences to decode, and the written text again."""
