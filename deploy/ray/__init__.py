"""The service on several machines with Ray: replicas of the engine (Ray Serve), and files in bulk (actors)."""
