"""Strategic classification: methods at scale, gaps, Algorithm 3 as printed, and learning curves."""
