"""`tandem bench reliability`: the service under overload, abuse and faults, each a trial with verdicts."""
