"""Training a model: the trainer, its optimizers, schedules, sampling and metrics, and the machine."""
