"""What is measured, against whom, and the committed results."""
