"""Long work: a job is accepted, kept on disk, worked on in a process of its own, and answered."""
