"""One readable module per algorithm."""
