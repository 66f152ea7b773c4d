"""Load tests: Locust's users (``locustfile``), and `tandem loadtest`, which finds the load that a service bears.

``texts``, ``scenarios`` and ``locustfile`` run in an image with Locust and nothing else of
this project: they import the standard library, Locust and one another only.
"""
