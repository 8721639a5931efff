"""Small parts that the algorithms share."""
