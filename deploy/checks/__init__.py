"""Checks of everything that is deployed and is no Python: ``python -m deploy.checks``, or ``make deploy-check``.

The tools of each format check it (hadolint, Compose, promtool, kustomize, kubernetes-validate, nginx); what they cannot
see is checked here: that names refer to something, that settings exist, that times fit one another.
"""
