"""Places for a training's progress: TensorBoard, and trackers of other packages."""
