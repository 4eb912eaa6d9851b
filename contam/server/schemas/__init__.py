"""What requests and answers are made of, with an example each."""
