"""The routes: thin, each a few lines between HTTP and the service."""
