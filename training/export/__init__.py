"""From a trained model to graphs that other runtimes run, and the proof that they give the same results."""
