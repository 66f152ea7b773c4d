"""What an update computes with: loss, optimisers and schedules, precision, recomputation, averages of the weights."""
