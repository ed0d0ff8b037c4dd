"""What is read: a stream's and a batch's positions, ranges and columns, decided on the driver."""
