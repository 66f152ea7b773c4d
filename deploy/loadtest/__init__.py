"""Load tests: Locust's users (``locustfile``), and `tandem loadtest`, which finds the load that a service bears.

``grammar``, ``texts``, ``scenarios``, ``variables`` and ``locustfile`` run in an image with Locust and nothing else of
this project: they import the standard library, Locust and one another only.
"""
