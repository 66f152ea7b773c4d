"""What operators see: metrics, traces, logs, and the limits of the machine."""
