"""What does a corpus look like without the benchmark, and is it proved?"""
