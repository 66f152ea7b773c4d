"""The service on several machines with Ray Serve: replicas of the engine, scaled by the fill of their queues."""
