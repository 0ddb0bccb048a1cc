"""What several tests need: data, models and references to compare with."""
