"""How models are trained: the learning rate over the steps of a training."""
