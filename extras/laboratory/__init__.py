"""The laboratory: what is measured of this project, beside what others would use, in one run.

``decoding``, ``service`` and ``training`` hold what they measure, ``abuse`` what the service must survive. Every
measurement is a module with ``measure(options)``, which returns plain figures, and ``show(result)``, which prints them;
``options`` declares what each is asked, `tandem bench` (``cli``) lists them, and ``runner`` takes the turns.
"""
